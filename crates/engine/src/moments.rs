//! [`Moments`]: variances, covariances and correlations from noisy sums, each with its interval.
//!
//! **Definition.** For deviations d, e of two columns from the middles of their bounds there are noisy D = Σ d, E = Σ e, P = Σ (d·e − h) and a noisy
//! count N; h is known, and for a variance e is d. With U = P + h·N − D·E/N the covariance is U/N, or U/(N − 1) of a sample, within −HK and HK; a variance
//! lies within 0 and H². The correlation is U_xy/√(U_xx·U_yy).
//!
//! **Interval of a covariance c.** For the true means r of d and s of e, P + h·N − s·D − r·E + r·s·N − c·N is nothing but noise:
//!
//! ```text
//! Z_P − s·Z_D − r·Z_E + (h + r·s − c)·Z_N,
//! ```
//!
//! whose law is known ([`Spread`]). At r̂ = D/N and ŝ = E/N in place of r and s the left side is U − c·N, and it differs from that at the truth by
//! N·(r − r̂)·(s − ŝ): r̂ and ŝ are where it is stationary. So if |r − r̂| ≤ R and |s − ŝ| ≤ S, which hold but for a small part of β,
//! and the noise is at most q but for the rest,
//!
//! ```text
//! |U − c·N| ≤ q + N·R·S,        and for a variance −q − N·R² ≤ U − c·N ≤ q.
//! ```
//!
//! q grows with c by at most the quantile q∞ of Z_N per unit, so the ends are fixed points; where N ≤ 2·q∞ nothing is known but the bounds. Factors of noise
//! are taken at the ends of what r and s may be, so that the interval errs to the wide side where noise is large. Of a sample N − 1 takes the
//! place of N beside c.
//!
//! **Interval of a correlation ρ.** With true standard deviations a, b and means, U_xy/ab − ρ/2·(U_xx/a² + U_yy/b²) is nothing but noise. With
//! A = U_xx/a² and B = U_yy/b² its first term is ρ̂·√(A·B): hence ρ = ρ̂·g − noise/m, m = (A + B)/2, g = √(A·B)/m ≤ 1. Intervals of both variances bound g
//! and m; where one reaches 0, nothing is known but −1 and 1.
//!
//! **Undefined.** Nothing is said (NULL) where the noisy count is below 1, or 2 for a sample and a correlation, or where a variance that divides
//! is not above 0.
//!
//! **Exactness.** Doubles: nothing here is about privacy.

use demur_plan::{Moment, Recipe, step_size};

use crate::EngineError;
use crate::interval::{Interval, Spread};

/// The part of β for each mean and each variance that is needed on the way.
const SIDE: f64 = 1.0 / 40.0;

/// A recipe of moments with the laws of its noise.
pub(crate) struct Moments<'a> {
    which: Moment,
    beta: f64,
    count: &'a Spread,
    axes: Vec<Axis<'a>>,
    products: Vec<Product<'a>>,
}

/// Deviations of one column.
struct Axis<'a> {
    noise: &'a Spread,
    step: f64,
    /// H.
    reach: f64,
}

/// Products of deviations.
struct Product<'a> {
    noise: &'a Spread,
    step: f64,
    /// h.
    middle: f64,
    x: usize,
    y: usize,
}

/// What noise made of the sums of one group.
struct Seen {
    count: f64,
    /// r̂ and how far r is from it.
    means: Vec<(f64, f64)>,
    /// U of each product.
    centred: Vec<f64>,
}

impl<'a> Moments<'a> {
    /// For the recipe's noises: count, deviations, products.
    pub(crate) fn new(recipe: &Recipe, noises: &[&'a Spread], beta: f64) -> Result<Self, EngineError> {
        let Recipe::Moments { which, axes, products, .. } = recipe else {
            return Err(EngineError::after_the_charge());
        };
        let [count, others @ ..] = noises else { return Err(EngineError::after_the_charge()) };
        let (first, second) =
            others.split_at_checked(axes.len()).ok_or_else(EngineError::after_the_charge)?;
        let axis = |(axis, noise): (&demur_plan::Axis, &&'a Spread)| {
            let step = step_size(axis.step).to_f64();
            Axis { noise, step, reach: axis.reach as f64 * step }
        };
        // Squares of each column come first, products of both last.
        let product = |(at, (product, noise)): (usize, (&demur_plan::Product, &&'a Spread))| {
            let step = step_size(product.step).to_f64();
            let (x, y) = if axes.len() == 2 && at + 1 == products.len() { (0, 1) } else { (at, at) };
            Product { noise, step, middle: product.middle as f64 * step, x, y }
        };
        Ok(Self {
            which: *which,
            beta,
            count,
            axes: axes.iter().zip(first).map(axis).collect(),
            products: products.iter().zip(second).enumerate().map(product).collect(),
        })
    }

    /// The statistic of one group, from its noisy numbers in the order of the noises.
    pub(crate) fn of(&self, numbers: &[i128]) -> Result<Option<(f64, Interval)>, EngineError> {
        let least = if self.which.of_sample() || self.which == Moment::Corr { 2 } else { 1 };
        let [count, others @ ..] = numbers else { return Err(EngineError::after_the_charge()) };
        if *count < least || others.len() != self.axes.len() + self.products.len() {
            return Ok(None);
        }
        let seen = self.seen(*count as f64, others)?;
        if self.which == Moment::Corr {
            return self.correlation(&seen);
        }
        let Some(product) = self.products.first() else { return Err(EngineError::after_the_charge()) };
        let [low, high] = self.range(product);
        let divisor = seen.count - if self.which.of_sample() { 1.0 } else { 0.0 };
        let value = (seen.centred[0] / divisor).clamp(low, high);
        let found = self.covariance(&seen, 0, self.beta, divisor)?;
        Ok(Some(match self.which {
            Moment::StddevPop | Moment::StddevSamp => {
                (value.sqrt(), Interval { low: found.low.sqrt(), high: found.high.sqrt() })
            }
            _ => (value, found),
        }))
    }

    fn seen(&self, count: f64, others: &[i128]) -> Result<Seen, EngineError> {
        let (sums, products) = others.split_at(self.axes.len());
        let mut means = Vec::new();
        for (axis, sum) in self.axes.iter().zip(sums) {
            let far = Spread::sum(&[(axis.step, axis.noise), (axis.reach, self.count)]);
            let far = far.quantile(self.beta * SIDE)? / count;
            means.push((
                (*sum as f64 * axis.step / count).clamp(-axis.reach, axis.reach),
                far.min(2.0 * axis.reach),
            ));
        }
        let centred = |(product, sum): (&Product<'_>, &i128)| {
            let mean = |axis: usize| sums[axis] as f64 * self.axes[axis].step / count;
            *sum as f64 * product.step + count * (product.middle - mean(product.x) * mean(product.y))
        };
        Ok(Seen { count, means, centred: self.products.iter().zip(products).map(centred).collect() })
    }

    /// Where a covariance can be.
    fn range(&self, product: &Product<'_>) -> [f64; 2] {
        let most = self.axes[product.x].reach * self.axes[product.y].reach;
        [if product.x == product.y { 0.0 } else { -most }, most]
    }

    /// Where U/`divisor` lies for the true sums.
    fn covariance(&self, seen: &Seen, at: usize, beta: f64, divisor: f64) -> Result<Interval, EngineError> {
        let product = &self.products[at];
        let [least, most] = self.range(product);
        let whole = Interval { low: least, high: most };
        let sides = if product.x == product.y { 1.0 } else { 2.0 };
        let beta = beta * (1.0 - sides * SIDE);
        if divisor <= 2.0 * self.count.quantile(beta)? {
            return Ok(whole);
        }
        let [(r, near_r), (s, near_s)] = [seen.means[product.x], seen.means[product.y]];
        let (r, s) = (r.abs(), s.abs());
        let [x, y] = [&self.axes[product.x], &self.axes[product.y]];
        let product_of_means = seen.means[product.x].0 * seen.means[product.y].0;
        let second = r * near_s + s * near_r + near_r * near_s;
        let reach = |c: f64| {
            let count = (product.middle + product_of_means - c).abs() + second;
            let terms = match product.x == product.y {
                true => vec![
                    (product.step, product.noise),
                    (2.0 * (r + near_r) * x.step, x.noise),
                    (count, self.count),
                ],
                false => vec![
                    (product.step, product.noise),
                    ((s + near_s) * x.step, x.noise),
                    ((r + near_r) * y.step, y.noise),
                    (count, self.count),
                ],
            };
            Spread::sum(&terms).quantile(beta)
        };
        let bent = seen.count * near_r * near_s;
        let (below, above) = if product.x == product.y { (0.0, bent) } else { (bent, bent) };
        let centred = seen.centred[at];
        let low = fixed_point(|c| Ok((centred - below - reach(c)?) / divisor), centred / divisor)?;
        let high = fixed_point(|c| Ok((centred + above + reach(c)?) / divisor), centred / divisor)?;
        Ok(Interval { low, high }.within(least, most))
    }

    fn correlation(&self, seen: &Seen) -> Result<Option<(f64, Interval)>, EngineError> {
        let [xx, yy, xy] = seen.centred[..] else { return Err(EngineError::after_the_charge()) };
        if !(xx > 0.0 && yy > 0.0) {
            return Ok(None);
        }
        let value = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
        let whole = Interval { low: -1.0, high: 1.0 };
        let variance = |at: usize| self.covariance(seen, at, self.beta * SIDE, seen.count);
        let (x, y) = (variance(0)?, variance(1)?);
        if !(x.low > 0.0 && y.low > 0.0) {
            return Ok(Some((value, whole)));
        }
        let ends = |u: f64, v: Interval| [u / v.high, u / v.low];
        let ([a_low, a_high], [b_low, b_high]) = (ends(xx, x), ends(yy, y));
        let m = (a_low + b_low) / 2.0;
        // √(AB)/((A + B)/2) depends on A/B alone, and is least where that is furthest from 1.
        let g = [a_low / b_high, a_high / b_low]
            .map(|t| 2.0 * t.sqrt() / (1.0 + t))
            .into_iter()
            .fold(1.0, f64::min);
        let [(r, near_r), (s, near_s)] = seen.means[..] else { return Err(EngineError::after_the_charge()) };
        let [x_axis, y_axis] = &self.axes[..] else { return Err(EngineError::after_the_charge()) };
        let [p, q, pq] = &self.products[..] else { return Err(EngineError::after_the_charge()) };
        let (vx, vy) = (x.low, y.low);
        let ab = (vx * vy).sqrt();
        let beta = self.beta * (1.0 - 4.0 * SIDE);
        let reach = |rho: f64| {
            let [half_x, half_y] = [rho / (2.0 * vx), rho / (2.0 * vy)];
            let of_x = (-s / ab + 2.0 * half_x * r).abs() + near_s / ab + 2.0 * half_x.abs() * near_r;
            let of_y = (-r / ab + 2.0 * half_y * s).abs() + near_r / ab + 2.0 * half_y.abs() * near_s;
            let of_count =
                (pq.middle + r * s) / ab - half_x * (p.middle + r * r) - half_y * (q.middle + s * s);
            let near = (r.abs() * near_s + s.abs() * near_r + near_r * near_s) / ab
                + half_x.abs() * (2.0 * r.abs() * near_r + near_r * near_r)
                + half_y.abs() * (2.0 * s.abs() * near_s + near_s * near_s);
            let noise = Spread::sum(&[
                (pq.step / ab, pq.noise),
                (half_x.abs() * p.step, p.noise),
                (half_y.abs() * q.step, q.noise),
                (of_x * x_axis.step, x_axis.noise),
                (of_y * y_axis.step, y_axis.noise),
                (of_count.abs() + near, self.count),
            ]);
            let bent = near_r * near_s / ab + half_x.abs() * near_r * near_r + half_y.abs() * near_s * near_s;
            Ok::<_, EngineError>((noise.quantile(beta)? + seen.count * bent) / m)
        };
        let low = fixed_point(|rho| Ok(value.min(value * g) - reach(rho)?), value)?;
        let high = fixed_point(|rho| Ok(value.max(value * g) + reach(rho)?), value)?;
        Ok(Some((value, Interval { low, high }.within(-1.0, 1.0))))
    }
}

/// Where a slowly moving function meets its argument.
fn fixed_point(f: impl Fn(f64) -> Result<f64, EngineError>, start: f64) -> Result<f64, EngineError> {
    let mut at = start;
    for _ in 0..30 {
        let next = f(at)?;
        let done = (next - at).abs() <= 1e-4 * (next - start).abs();
        at = next;
        if done {
            break;
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
