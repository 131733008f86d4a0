//! A law on the grid that is *better*: pieces of neighbouring cells are put together on grid points.
//!
//! **Definition.** A cell [a, a + h] has the masses p under P and w under Q, with e^a·w ≤ p ≤ e^(a+h)·w. Its excess over
//! the left end is A = p − e^a·w, its deficit below the right end B = e^(a+h)·w − p. At a grid point the share f of
//! the cell on its left and the share l of the cell on its right make one piece whose ratio is exactly that of
//! the point when
//!
//! ```text
//! f·B_left = l·A_right
//! ```
//!
//! **Guarantee.** Putting outputs together is a post-processing: the new pair is dominated. So is a pair with less P
//! for the same Q, which is how what is left over is rounded down to the grid point on its left.
//!
//! **Method.** With f = 1 − l of the cell before, l is found cell by cell. Where masses grow that contracts errors of
//! l, so it is done from both ends towards the largest cell. Shares are about ½, the profile between grid
//! points is a tangent instead of a chord, and the law is below the truth by no more than Lemma 6's is above.

use crate::nodes::UNIT;

/// The units by which masses and ratios of merged pieces may be off.
pub(super) const OFF: f64 = 64.0;

/// One cell: what it has of P, and e^a times what it has of Q.
#[derive(Clone, Copy, Default)]
pub(super) struct Cell {
    p: f64,
    low: f64,
    excess: f64,
    deficit: f64,
}

impl Cell {
    /// `p` at most the mass under P, `low` at least e^a times the mass under Q, `rise` = e^h − 1.
    pub(super) fn new(p: f64, low: f64, rise: f64) -> Self {
        let usable = low > 0.0 && low.is_finite() && p >= low * (1.0 - 16.0 * UNIT);
        if !usable {
            return Self::default(); // less of P is on the safe side
        }
        let excess = (p - low).clamp(0.0, low * rise);
        Self { p: low + excess, low, excess, deficit: low * rise - excess }
    }
}

/// The masses at the grid points around `cells`, which are one fewer; masses and ratios are off by at most `OFF` units.
pub(super) fn merged(cells: &[Cell]) -> Vec<f64> {
    let mut masses = vec![0.0; cells.len() + 1];
    let largest = |best: usize, at: usize| if cells[at].p > cells[best].p { at } else { best };
    let mode = (0..cells.len()).fold(0, largest);
    let Some(heaviest) = cells.get(mode) else { return masses };
    // From the left: what is left of the cell before meets a share of the next.
    let mut left = 1.0;
    for point in 1..=mode {
        let (before, after) = (cells[point - 1], cells[point]);
        let (given, taken) = balance(left * before.deficit, before.deficit, after.excess, 1.0, left);
        masses[point] += given * before.p + taken * after.p;
        masses[point - 1] += (left - given) * before.low;
        left = 1.0 - taken;
    }
    // From the right, with what is left of the largest cell.
    let mut right = if mode + 1 < cells.len() { 1.0 } else { left };
    for point in (mode + 1..cells.len()).rev() {
        let (before, after) = (cells[point - 1], cells[point]);
        let most = if point - 1 == mode { left } else { 1.0 };
        let (given, taken) = balance(right * after.excess, after.excess, before.deficit, most, right);
        masses[point] += given * after.p + taken * before.p + (right - given) * after.low;
        right = most - taken;
    }
    masses[mode] += right * heaviest.low;
    masses
}

/// Which share of one cell (at most `all`) meets which of the other (at most `most`), for `amount` = all·`own`.
fn balance(amount: f64, own: f64, other: f64, most: f64, all: f64) -> (f64, f64) {
    if amount <= 0.0 {
        return (all, 0.0); // its ratio is that of the point already
    }
    if amount <= most * other {
        return (all, (amount / other).min(most));
    }
    ((most * other / own).min(all), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f64 = 0.125;

    /// Cells of a density in the ratio, each with its masses by a fine sum, from index `first` on.
    fn cells(first: i64, count: usize, density: impl Fn(f64) -> f64) -> (Vec<(f64, f64)>, Vec<Cell>) {
        let masses = |index: usize| {
            let a = (first + index as i64) as f64 * STEP;
            let sum = (0..64).map(|part| a + STEP * (f64::from(part) + 0.5) / 64.0);
            sum.fold((0.0, 0.0), |(p, w), loss| {
                let mass = density(loss) * STEP / 64.0;
                (p + mass, w + mass * (-loss).exp())
            })
        };
        let masses: Vec<_> = (0..count).map(masses).collect();
        let cell = |(index, (p, w)): (usize, &(f64, f64))| {
            Cell::new(*p, w * ((first + index as i64) as f64 * STEP).exp(), STEP.exp_m1())
        };
        let cells = masses.iter().enumerate().map(cell).collect();
        (masses, cells)
    }

    /// Σ (p − E·w)⁺ over cells, which is at most the profile, and exactly that at the grid.
    fn profile(first: i64, masses: &[f64], epsilon: f64) -> f64 {
        let gap = |index: usize| (first + index as i64) as f64 * STEP - epsilon;
        masses.iter().enumerate().map(|(index, p)| p * -(-gap(index).max(0.0)).exp_m1()).sum()
    }

    fn bell(loss: f64) -> f64 {
        (-(loss - 0.4) * (loss - 0.4)).exp()
    }

    /// E_P (1 − e^(ε − L))⁺ by a fine sum.
    fn truth(density: impl Fn(f64) -> f64, low: f64, high: f64, epsilon: f64) -> f64 {
        let part = (high - low) / 1e5;
        let term = |loss: f64| density(loss) * -(-(loss - epsilon).max(0.0)).exp_m1() * part;
        (0..100_000).map(|index| term(low + (f64::from(index) + 0.5) * part)).sum()
    }

    /// Second order: what is lost is at most h² times the largest density that is left to pay for.
    #[test]
    fn the_merged_law_is_below_the_profile_and_close_to_it() {
        type Shape = (&'static str, fn(f64) -> f64);
        // Losses on the left of a valley find too few partners in it, and so do those on its right.
        let shapes: [Shape; 6] = [
            ("one hill", bell),
            ("two hills", |x| bell(3.0 * x + 3.0) + 0.5 * bell(4.0 * x - 6.0)),
            ("two hills, the second larger", |x| 0.5 * bell(3.0 * x + 3.0) + bell(4.0 * x - 6.0)),
            ("a valley", |x| if x.abs() > 1.03 { 1.0 + 0.1 * x } else { 0.02 }),
            ("falling", |x| (-2.0 * x).exp()),
            ("an edge", |x| if x < 0.3 { 0.0 } else { (-x).exp() }),
        ];
        for (name, density) in shapes {
            let (first, count) = (-40, 80);
            let (_, cells) = cells(first, count, density);
            let masses = merged(&cells);
            for tenth in -30..40 {
                let epsilon = f64::from(tenth) / 10.0;
                let found = profile(first, &masses, epsilon);
                let truth = truth(density, -5.0, 5.0, epsilon);
                assert!(found <= truth * (1.0 + 1e-6) + 1e-9, "{name}: {found} above {truth} at {epsilon}");
                let above = (0..800).map(|index| epsilon - STEP + f64::from(index) / 100.0);
                let largest = above.map(density).fold(0.0, f64::max);
                let lost = truth - found;
                assert!(
                    lost < STEP * STEP * largest + 1e-6,
                    "{name}: {found} far below {truth} at {epsilon}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_gained_in_either_mass() {
        let (masses, cells) = cells(-20, 40, bell);
        let merged = merged(&cells);
        let (p, w): (f64, f64) = masses.iter().fold((0.0, 0.0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1));
        let found: f64 = merged.iter().sum();
        let other: f64 =
            merged.iter().enumerate().map(|(index, p)| p * (-(index as f64 - 20.0) * STEP).exp()).sum();
        assert!(found <= p * (1.0 + 1e-12) && found > p * (1.0 - 2e-3), "{found} {p}");
        assert!((other / w - 1.0).abs() < 1e-12, "{other} {w}");
    }

    #[test]
    fn a_cell_whose_ratio_is_outside_of_it_is_lowered() {
        let rise = STEP.exp_m1();
        assert_eq!(Cell::new(0.9, 1.0, rise).p, 0.0);
        assert!((Cell::new(2.0, 1.0, rise).p - STEP.exp()).abs() < 1e-15);
        assert_eq!(Cell::new(1.0, f64::INFINITY, rise).p, 0.0);
        assert_eq!(Cell::new(1.0, f64::NAN, rise).p, 0.0);
        assert_eq!(merged(&[]), vec![0.0]);
    }
}
