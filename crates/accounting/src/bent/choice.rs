//! Which line a moment is bounded and integrated along. Every line is valid, so nothing about the search must be proven.

use num_complex::Complex64;

use super::line::{Line, LogBounds, Noise, STEEP};
use super::strips::{DEPTH, Strips};

/// The largest β₀, which leaves room for the strip, and the largest slope.
const MOST: (f64, f64) = (2.2, 0.48);

/// A line with a small bound on |K|^n at the corners of a panel, `fall` for how e^(−zε) falls in Re w for each use.
///
/// It is level where φ is large and rises where e^(wΛ) would be. Every line is valid, so nothing about the search must be
/// proven.
pub(super) fn bounding_line(
    noise: &Noise,
    before: &Line,
    corners: &[Complex64],
    fall: f64,
    anew: bool,
) -> Line {
    let cost = |line: &Line| {
        let height = |(w, about): (&Complex64, LogBounds)| noise.count * (about.whole - w.re * fall);
        let heights: Vec<_> =
            corners.iter().zip(line.abouts(noise, corners, f64::INFINITY)).map(height).collect();
        let highest = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let highest = highest + 0.3 * heights.iter().sum::<f64>() / heights.len() as f64;
        if line.angle + 0.7 * line.slope > 2.6 || line.angle < 0.0 {
            f64::INFINITY
        } else {
            highest + 0.01 * line.angle
        }
    };
    let floor = before.floor.unwrap_or(0.0);
    let line = |(kink, slope, floor, right): (f64, f64, f64, f64)| Line {
        angle: floor - slope * noise.mu * (kink - noise.centre),
        slope,
        right,
        floor: Some(floor),
    };
    let kink = if before.slope > 0.0 {
        noise.centre + (floor - before.angle) / before.slope / noise.mu
    } else {
        3.0
    };
    let far = [0.25, 0.5, 0.75].map(|share| (share * noise.centre).max(9.0));
    let grid = [-2.0, 0.0, 1.5, 3.0, 4.5, 6.0].into_iter().chain(far).flat_map(|kink| {
        [(0.06, 1.0), (0.12, 1.0), (0.12, 1.6), (0.25, 1.0), (0.4, 1.0)]
            .map(|(slope, more)| (kink, slope, more * floor, STEEP))
    });
    let flat = [0.0, floor].into_iter().flat_map(|floor| [0.0, STEEP].map(|right| (0.0, 0.0, floor, right)));
    let anew = anew || before.floor.is_none();
    let starts = grid.filter(|_| anew).chain(flat).chain([(kink, before.slope, floor, STEEP)]);
    let starts = starts.map(|start| (cost(&line(start)), start));
    let (mut least, mut here) =
        starts.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, (0.0, 0.0, 0.0, 0.0)));
    let mut scale = 1.0;
    for _ in 0..10 {
        let start = here;
        let rise = 0.3 * scale * start.2 + 0.02 * scale;
        for (kink, slope, floor) in [
            (0.7, 0.0, 0.0),
            (-0.7, 0.0, 0.0),
            (0.0, 0.06, 0.0),
            (0.0, -0.06, 0.0),
            (0.0, 0.0, rise),
            (0.0, 0.0, -rise),
        ] {
            let tried = (
                start.0 + scale * kink,
                (start.1 + scale * slope).clamp(0.0, MOST.1),
                (start.2 + floor).clamp(0.0, 2.0),
                start.3,
            );
            let value = cost(&line(tried));
            if value < least {
                (least, here) = (value, tried);
            }
        }
        if here == start {
            if scale < 0.3 {
                break;
            }
            scale /= 2.0;
        }
    }
    line(here)
}

/// A straight line to integrate along, between two points.
pub(super) fn straight_line(noise: &Noise, before: &Line, ends: &[Complex64], anew: bool) -> Line {
    // what is lost by cancellation, and how many places there would be
    let cost = |line: &Line| {
        let Some(strips) = Strips::new(noise, line, ends) else { return f64::INFINITY };
        strips.part + strips.best().map_or(f64::INFINITY, |best| best.1.ln())
    };
    // by β at s = 0, where φ is large, and by the slope
    let line = |(rise, slope): (f64, f64)| {
        let slope = slope.clamp(0.0, MOST.1);
        Line::new((rise + slope * noise.mu * noise.centre).clamp(0.0, MOST.0), slope)
    };
    let known = (before.angle - before.slope * noise.mu * noise.centre, before.slope);
    let grid = [(0.0, 0.0), (0.0, 0.05), (0.1, 0.05), (0.0, 0.12), (0.2, 0.12), (0.0, 0.2), (0.3, 0.2)];
    let grid = grid.into_iter().filter(|(_, slope)| anew || *slope == 0.0);
    let starts = grid.chain([known]).map(|start| (cost(&line(start)), start));
    let (mut least, mut here) = starts.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, known));
    let mut scale = 1.0;
    for _ in 0..8 {
        let start = here;
        for (rise, slope) in [(0.15, 0.0), (-0.15, 0.0), (0.0, 0.04), (0.0, -0.04)] {
            let tried = (start.0 + scale * rise, start.1 + scale * slope);
            let value = cost(&line(tried));
            if value < least {
                (least, here) = (value, tried);
            }
        }
        if here == start {
            if scale < 0.6 {
                break;
            }
            scale /= 2.0;
        }
    }
    line(here)
}

/// ln of what may be cut off.
pub(super) fn level(noise: &Noise, line: &Line, corners: &[Complex64]) -> f64 {
    let middle = corners.iter().sum::<Complex64>() / corners.len() as f64;
    line.abouts(noise, &[middle], f64::INFINITY)[0].part - DEPTH
}
