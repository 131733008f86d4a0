//! A run of private k-means, look by look.
//!
//! Everything here but the closures handed to the curator is post-processing; closures know what was published and one point.

use demur_noise::Words;

use super::axes::axes;
use super::coreset::{Weighted, centers, nearest, normal, uniform};
use super::{CELLS_PER_CLUSTER, Clusters, DISTANCES, MOMENT_REACH, Plan, REACH, ROUNDS};
use crate::LearnError;
use crate::curator::{Curator, Noise, Sums};
use crate::progress::{Progress, Watch, tell};

/// Points further out than this share of all count as if on the sphere.
const OUTSIDE: f64 = 0.02;
/// Counts below so many standard deviations of noise are no counts.
const SURE: f64 = 3.0;

/// How often the coreset is clustered.
const ATTEMPTS: usize = 30;

/// Where points are looked at from: a public frame.
struct Frame<'a> {
    bounds: &'a [(f64, f64)],
    middle: Vec<f64>,
    radius: f64,
    /// Directions of length 1; all of them if empty.
    axes: Vec<Vec<f64>>,
}

impl Frame<'_> {
    /// A point clamped to its bounds, seen from the middle.
    fn offset(&self, point: &[f64]) -> Vec<f64> {
        let clamped = point.iter().zip(self.bounds).map(|(&x, &(low, high))| x.clamp(low, high));
        clamped.zip(&self.middle).map(|(x, middle)| x - middle).collect()
    }

    /// The same, no further away than the radius.
    fn within(&self, point: &[f64]) -> Vec<f64> {
        let mut offset = self.offset(point);
        let norm = norm(&offset);
        if norm > self.radius {
            offset.iter_mut().for_each(|x| *x *= self.radius / norm);
        }
        offset
    }

    /// Its coordinates along the axes.
    fn along(&self, offset: &[f64]) -> Vec<f64> {
        self.axes.iter().map(|axis| dot(axis, offset)).collect()
    }

    /// Back from coordinates along the axes.
    fn across(&self, place: &[f64]) -> Vec<f64> {
        let mut offset = vec![0.0; self.middle.len()];
        for (axis, &x) in self.axes.iter().zip(place) {
            offset.iter_mut().zip(axis).for_each(|(sum, a)| *sum += a * x);
        }
        offset
    }

    /// Whole steps of which `reach` are a radius.
    fn steps(&self, offset: &[f64], reach: u64, out: &mut [i64]) {
        let scale = reach as f64 / self.radius;
        out.iter_mut().zip(offset).for_each(|(out, x)| *out = (x * scale).round() as i64);
    }
}

pub(super) fn run<W: Words>(
    plan: &Plan,
    curator: &mut Curator<'_, W>,
    watch: &mut Watch<'_>,
) -> Result<Clusters, LearnError> {
    let mut told = 0;
    let mut tell = |watch: &mut Watch<'_>| {
        let look = &plan.looks[told];
        told += 1;
        tell(watch, Progress { stage: look.stage, step: told, steps: Some(plan.looks.len()) })
    };
    let half = |&(low, high): &(f64, f64)| (high - low) / 2.0;
    let mut frame = Frame {
        bounds: &plan.bounds,
        middle: plan.bounds.iter().map(|&(low, high)| low + (high - low) / 2.0).collect(),
        radius: norm(&plan.bounds.iter().map(half).collect::<Vec<_>>()),
        axes: Vec::new(),
    };
    let count = find_middle(curator, &mut frame)?;
    tell(watch)?;
    find_radius(curator, &mut frame, plan, count)?;
    tell(watch)?;
    let spread = find_axes(curator, &mut frame, plan, count)?;
    tell(watch)?;

    let mut cells = first_cells(plan, &spread, count, curator.words);
    let mut coreset = Vec::new();
    for round in 0..ROUNDS {
        let sums = means(curator, &frame, &cells)?;
        coreset = filled(&sums, &frame, deviation(plan, 3 + round));
        if round + 1 < ROUNDS {
            cells = next_cells(&coreset, cells.len(), &spread, plan.clusters, curator.words);
        }
        tell(watch)?;
    }
    let mut found = centers(&coreset, plan.clusters, ATTEMPTS, curator.words);
    while found.len() < plan.clusters {
        found.push(draw(&spread, curator.words));
    }

    let sums = means(curator, &frame, &found)?;
    move_sure(&mut found, &sums, &frame, deviation(plan, 3 + ROUNDS));
    tell(watch)?;
    let clusters = measure_centers(curator, &frame, plan, &found)?;
    tell(watch)?;
    Ok(clusters)
}

/// The noise of one count of a look, as a standard deviation.
fn deviation(plan: &Plan, look: usize) -> f64 {
    let look = &plan.looks[look];
    match &look.noise {
        Noise::Gaussian { variance } => variance.to_f64().sqrt() / look.weight.max(1) as f64,
        Noise::Laplace { scale } => scale.to_f64() * std::f64::consts::SQRT_2,
    }
}

/// Look 0: moves the frame to the mean; about how many points there are.
fn find_middle<W: Words>(curator: &mut Curator<'_, W>, frame: &mut Frame<'_>) -> Result<f64, LearnError> {
    let sums = curator.sums(1, frame.middle.len(), |point, out| {
        frame.steps(&frame.offset(point), REACH, out);
        Some(0)
    })?;
    let count = sums.counts[0].max(1.0);
    let unit = frame.radius / REACH as f64 / count;
    for ((middle, sum), &(low, high)) in frame.middle.iter_mut().zip(sums.vector(0)).zip(frame.bounds) {
        *middle = (*middle + sum * unit).clamp(low, high);
    }
    Ok(count)
}

/// Look 1: a radius that all but few points are within.
fn find_radius<W: Words>(
    curator: &mut Curator<'_, W>,
    frame: &mut Frame<'_>,
    plan: &Plan,
    count: f64,
) -> Result<(), LearnError> {
    // No point of the box is further from another than twice the radius of the box.
    let largest = 2.0 * frame.radius;
    let edge = |bin: usize| largest * 2f64.powf((bin as f64 + 1.0 - DISTANCES as f64) / 4.0);
    let sums = curator.sums(DISTANCES, 0, |point, _| {
        let distance = norm(&frame.offset(point));
        (0..DISTANCES - 1).find(|&bin| distance <= edge(bin)).or(Some(DISTANCES - 1))
    })?;
    let noise = deviation(plan, 1);
    let mut outside = 0.0;
    frame.radius = edge(0);
    for bin in (0..DISTANCES).rev() {
        outside += sums.counts[bin];
        let bins = (DISTANCES - bin) as f64;
        if outside > OUTSIDE * count + 2.0 * noise * bins.sqrt() {
            frame.radius = edge(bin);
            break;
        }
    }
    Ok(())
}

/// Look 2: the directions in which points differ most; the standard deviation along each.
fn find_axes<W: Words>(
    curator: &mut Curator<'_, W>,
    frame: &mut Frame<'_>,
    plan: &Plan,
    count: f64,
) -> Result<Vec<f64>, LearnError> {
    let d = frame.middle.len();
    let sums = curator.sums(1, d * (d + 1) / 2, |point, out| {
        let mut steps = vec![0; d];
        frame.steps(&frame.within(point), MOMENT_REACH, &mut steps);
        let mut places = out.iter_mut();
        for (i, a) in steps.iter().enumerate() {
            for (b, place) in steps[..=i].iter().zip(&mut places) {
                *place = a * b;
            }
        }
        Some(0)
    })?;
    let unit = (frame.radius / MOMENT_REACH as f64).powi(2) / count;
    let entry = |i: usize, j: usize| sums.vectors[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)] * unit;
    let found = axes((0..d).map(|i| (0..d).map(|j| entry(i, j)).collect()).collect());
    // Eigenvalues of pure noise stay below 2σ√d.
    let floor = 2.0 * deviation(plan, 2) * unit * (d as f64).sqrt();
    let above = found.iter().filter(|(value, _)| *value > floor).count();
    let kept = above.clamp(d.min(2), plan.max_axes());
    let spread =
        found[..kept].iter().map(|(value, _)| value.max(floor / 4.0).sqrt().min(frame.radius)).collect();
    frame.axes = found.into_iter().take(kept).map(|(_, axis)| axis).collect();
    Ok(spread)
}

/// A random place, spread as the points are.
fn draw<W: Words>(spread: &[f64], words: &mut W) -> Vec<f64> {
    spread.iter().map(|deviation| deviation * normal(words)).collect()
}

/// As many cells as the noise allows, up to [`CELLS_PER_CLUSTER`] for each cluster, at random places.
fn first_cells<W: Words>(plan: &Plan, spread: &[f64], count: f64, words: &mut W) -> Vec<Vec<f64>> {
    let look = &plan.looks[3];
    let noise = match &look.noise {
        Noise::Gaussian { variance } => variance.to_f64().sqrt() / look.reach as f64,
        Noise::Laplace { scale } => scale.to_f64(),
    };
    // The mean of a cell with count/cells points is off by noise·√axes·cells/count radii: an eighth, at most.
    let cells = (count / (8.0 * noise * (spread.len() as f64).sqrt())) as usize;
    let cells = cells.clamp(plan.clusters, CELLS_PER_CLUSTER * plan.clusters);
    (0..cells).map(|_| draw(spread, words)).collect()
}

/// Noisy sums and counts of the cells around these places.
fn means<W: Words>(
    curator: &mut Curator<'_, W>,
    frame: &Frame<'_>,
    cells: &[Vec<f64>],
) -> Result<Sums, LearnError> {
    curator.sums(cells.len(), frame.axes.len(), |point, out| {
        let place = frame.along(&frame.within(point));
        frame.steps(&place, REACH, out);
        Some(nearest(cells, &place).0)
    })
}

/// The mean of a cell, within the radius.
fn mean(sums: &Sums, cell: usize, frame: &Frame<'_>) -> Vec<f64> {
    let unit = frame.radius / REACH as f64 / sums.counts[cell].max(1.0);
    let mut place: Vec<f64> = sums.vector(cell).iter().map(|sum| sum * unit).collect();
    let norm = norm(&place);
    if norm > frame.radius {
        place.iter_mut().for_each(|x| *x *= frame.radius / norm);
    }
    place
}

/// The cells that surely have points, with their means.
fn filled(sums: &Sums, frame: &Frame<'_>, noise: f64) -> Vec<Weighted> {
    let sure = (0..sums.counts.len()).filter(|&cell| sums.counts[cell] > SURE * noise);
    sure.map(|cell| Weighted { place: mean(sums, cell, frame), weight: sums.counts[cell] }).collect()
}

/// The means of filled cells, and for each empty one a place near a filled one, drawn by weight.
fn next_cells<W: Words>(
    filled: &[Weighted],
    cells: usize,
    spread: &[f64],
    clusters: usize,
    words: &mut W,
) -> Vec<Vec<f64>> {
    let mut places: Vec<Vec<f64>> = filled.iter().map(|cell| cell.place.clone()).collect();
    let total: f64 = filled.iter().map(|cell| cell.weight).sum();
    // A cell is that much smaller than the whole.
    let shrink = 0.5 * (cells as f64 / clusters as f64).powf(-1.0 / spread.len() as f64);
    while places.len() < cells {
        let mut left = uniform(words) * total;
        let near = filled.iter().find(|cell| {
            left -= cell.weight;
            left < 0.0
        });
        let step = draw(spread, words);
        places.push(match near {
            Some(cell) => cell.place.iter().zip(step).map(|(x, step)| x + shrink * step).collect(),
            None => step,
        });
    }
    places
}

/// Centres with enough points move to their means.
fn move_sure(centers: &mut [Vec<f64>], sums: &Sums, frame: &Frame<'_>, noise: f64) {
    for (cell, center) in centers.iter_mut().enumerate() {
        if sums.counts[cell] > SURE * noise {
            *center = mean(sums, cell, frame);
        }
    }
}

/// The last look: means in all directions.
fn measure_centers<W: Words>(
    curator: &mut Curator<'_, W>,
    frame: &Frame<'_>,
    plan: &Plan,
    centers: &[Vec<f64>],
) -> Result<Clusters, LearnError> {
    let d = frame.middle.len();
    let sums = curator.sums(centers.len(), d, |point, out| {
        let offset = frame.within(point);
        frame.steps(&offset, REACH, out);
        Some(nearest(centers, &frame.along(&offset)).0)
    })?;
    let (look, counts) = (plan.looks.len() - 1, deviation(plan, plan.looks.len() - 1));
    let noise = counts * plan.looks[look].weight as f64 * frame.radius / REACH as f64;
    let mut clusters = Clusters { centers: Vec::new(), sizes: Vec::new() };
    for (cell, center) in centers.iter().enumerate() {
        let size = sums.counts[cell];
        let offset = match size > SURE * counts {
            true => shrunk(frame, &mean(&sums, cell, frame), noise / size),
            false => frame.across(center),
        };
        let place = offset.iter().zip(&frame.middle).zip(frame.bounds);
        clusters
            .centers
            .push(place.map(|((x, middle), &(low, high))| (x + middle).clamp(low, high)).collect());
        clusters.sizes.push(size.max(0.0));
    }
    Ok(clusters)
}

/// What stands outside the axes, less what noise of this deviation would put there.
fn shrunk(frame: &Frame<'_>, offset: &[f64], noise: f64) -> Vec<f64> {
    let inside = frame.across(&frame.along(offset));
    let outside: Vec<f64> = offset.iter().zip(&inside).map(|(x, y)| x - y).collect();
    let expected = (offset.len() - frame.axes.len()) as f64 * noise * noise;
    let kept = (1.0 - expected / dot(&outside, &outside).max(f64::MIN_POSITIVE)).max(0.0);
    inside.iter().zip(outside).map(|(x, y)| x + kept * y).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}
