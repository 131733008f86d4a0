use demur_exact::*;
fn main() {
    let mu = Rational::try_from(0.5f64.sqrt()).unwrap();
    let one = Rational::one();
    let t = std::time::Instant::now(); let d = gaussian_delta(&one, &mu); println!("delta {:?} {} bits {}", t.elapsed(), d.lower_f64(), d.bits());
    let x = &(&one / &mu) - &(&mu / &Rational::from(2u32));
    for bits in [100, 200, 400, 800] {
    let t = std::time::Instant::now(); mills(&x, bits); println!("mills {:?}", t.elapsed());
    let t = std::time::Instant::now(); normal_density(&x, bits); println!("density {:?}", t.elapsed());
    let t = std::time::Instant::now(); pi(bits); println!("pi {:?}", t.elapsed());
    let t = std::time::Instant::now(); exp_neg(&x.square(), bits); println!("exp {:?}", t.elapsed());
    }
}
