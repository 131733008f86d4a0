//! k-means of a few weighted points; post-processing of noisy cells.
//!
//! **Method.** Centres are seeded one after the other, each a point drawn by its weight times its squared distance from those before (k-means++), then moved
//! until they rest (Lloyd). Of many attempts the best counts.
//!
//! **References.** \[Arthur2007\], \[Lloyd1982\].

use demur_noise::Words;

/// How often centres move in one.
const MOVES: usize = 100;

/// A point that stands for `weight` others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weighted {
    pub(crate) place: Vec<f64>,
    pub(crate) weight: f64,
}

/// A uniform number from 0 to below 1, for choices that need no exactness.
pub(crate) fn uniform<W: Words>(words: &mut W) -> f64 {
    (words.word() >> 11) as f64 / (1u64 << 53) as f64
}

/// A normal number, for choices that need no exactness (Box–Muller).
pub(crate) fn normal<W: Words>(words: &mut W) -> f64 {
    let (radius, angle) = (1.0 - uniform(words), uniform(words));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

pub(crate) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// Which centre is nearest, and its squared distance.
pub(crate) fn nearest(centers: &[Vec<f64>], point: &[f64]) -> (usize, f64) {
    let distances = centers.iter().map(|center| squared_distance(center, point)).enumerate();
    distances.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
}

/// At most k centres of the points: the best of so many attempts.
pub(crate) fn centers<W: Words>(
    points: &[Weighted],
    k: usize,
    attempts: usize,
    words: &mut W,
) -> Vec<Vec<f64>> {
    if points.len() <= k {
        return points.iter().map(|point| point.place.clone()).collect();
    }
    let attempt = |_| {
        let mut centers = seeds(points, k, words);
        let mut cost = f64::INFINITY;
        for _ in 0..MOVES {
            let next = improve(points, &mut centers);
            if next >= cost * (1.0 - 1e-9) {
                break;
            }
            cost = next;
        }
        (cost, centers)
    };
    let best = (0..attempts).map(attempt).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(Vec::new, |(_, centers)| centers)
}

fn seeds<W: Words>(points: &[Weighted], k: usize, words: &mut W) -> Vec<Vec<f64>> {
    let mut far: Vec<f64> = points.iter().map(|point| point.weight).collect();
    let mut centers: Vec<Vec<f64>> = Vec::with_capacity(k);
    for _ in 0..k {
        let mut left = uniform(words) * far.iter().sum::<f64>();
        let chosen = far.iter().position(|&weight| {
            left -= weight;
            left < 0.0
        });
        let center = points[chosen.unwrap_or(points.len() - 1)].place.clone();
        for (far, point) in far.iter_mut().zip(points) {
            let distance = point.weight * squared_distance(&point.place, &center);
            *far = if centers.is_empty() { distance } else { far.min(distance) };
        }
        centers.push(center);
    }
    centers
}

/// Moves centres to the means of their points; the cost before.
fn improve(points: &[Weighted], centers: &mut [Vec<f64>]) -> f64 {
    let mut sums = vec![vec![0.0; centers[0].len()]; centers.len()];
    let mut weights = vec![0.0; centers.len()];
    let mut cost = 0.0;
    for point in points {
        let (index, distance) = nearest(centers, &point.place);
        cost += point.weight * distance;
        weights[index] += point.weight;
        sums[index].iter_mut().zip(&point.place).for_each(|(sum, x)| *sum += point.weight * x);
    }
    for ((center, sum), weight) in centers.iter_mut().zip(sums).zip(weights) {
        if weight > 0.0 {
            *center = sum.into_iter().map(|sum| sum / weight).collect();
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::Seeded;

    #[test]
    fn heavy_groups_are_found() {
        let group = |x: f64, y: f64| {
            (0..5)
                .map(move |i| Weighted { place: vec![x + 0.1 * f64::from(i), y], weight: 1.0 + f64::from(i) })
        };
        let points: Vec<Weighted> = group(0.0, 0.0).chain(group(5.0, 0.0)).chain(group(0.0, 7.0)).collect();
        let mut found = centers(&points, 3, 30, &mut Seeded::new(1));
        found.sort_by(|a, b| (a[0] + 2.0 * a[1]).total_cmp(&(b[0] + 2.0 * b[1])));
        // The weighted mean of 0, 0.1 … 0.4 with weights 1 … 5 is 4/15.
        for (center, expected) in found.iter().zip([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]]) {
            assert!(
                (center[0] - expected[0] - 4.0 / 15.0).abs() < 1e-9 && (center[1] - expected[1]).abs() < 1e-9
            );
        }
    }

    #[test]
    fn fewer_points_than_centres_are_their_own_centres() {
        let one = Weighted { place: vec![1.0], weight: 2.0 };
        assert_eq!(centers(std::slice::from_ref(&one), 3, 30, &mut Seeded::new(1)), [[1.0]]);
        assert!(centers(&[], 3, 30, &mut Seeded::new(1)).is_empty());
        let same = vec![one; 5];
        assert_eq!(centers(&same, 2, 30, &mut Seeded::new(1)).len(), 2);
    }
}
