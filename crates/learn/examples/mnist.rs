//! Handwritten digits at (ε, 10⁻⁵): softmax regression on scattering features.
//!
//! `cargo run --release -p demur-learn --example mnist -- 3 1.2` trains three models for each ε and prints how many digits of the test set they read.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use demur_core::Guarantee;
use demur_learn::train::{Examples, Network, Plan, Recipe, Scattering, Shape, Targets};
use demur_noise::Entropy;

fn read(name: &str, header: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/mnist");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(File::open(folder.join(name))?).read_to_end(&mut bytes)?;
    Ok(bytes.split_off(header))
}

fn images(name: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    Ok(read(name, 16)?.iter().map(|&pixel| f32::from(pixel) / 255.0).collect())
}

fn labels(name: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    Ok(read(name, 8)?.iter().map(|&label| u32::from(label)).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let epsilons: Vec<&str> = arguments.iter().take_while(|a| !a.contains('=')).map(String::as_str).collect();
    let option = |name: &str, default: f64| {
        arguments
            .iter()
            .find_map(|a| a.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
            .unwrap_or(default)
    };
    let started = Instant::now();
    let scattering = Scattering::new(28, 28)?;
    let train = scattering.features(&images("train-images-idx3-ubyte.gz")?)?;
    let test = scattering.features(&images("t10k-images-idx3-ubyte.gz")?)?;
    let size = scattering.shape().size();
    let truth = labels("t10k-labels-idx1-ubyte.gz")?;
    let examples =
        Examples::new(Shape::row(size), train, Targets::Classes(labels("train-labels-idx1-ubyte.gz")?))?;
    println!("{} features of 70 000 images in {:.1} s", size, started.elapsed().as_secs_f64());

    let entropy = &mut Entropy::from_os()?;
    for epsilon in epsilons {
        let guarantee = Guarantee::new(epsilon.parse()?, "1e-5".parse()?);
        let recipe = Recipe::usual(60_000);
        let recipe = Recipe { rate: option("rate", recipe.rate), ..recipe };
        let plan = Plan::new(Network::softmax(size, 10)?, 60_000, guarantee, recipe)?;
        println!("σ/C {:.3}, ε {:.4}", plan.noise_multiplier(), plan.epsilon(&"1e-5".parse()?)?);
        for _ in 0..option("runs", 3.0) as usize {
            let started = Instant::now();
            let model = plan.fit(&examples, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
            let seconds = started.elapsed().as_secs_f64();
            let right = model.classify(&test)?.iter().zip(&truth).filter(|(a, b)| a == b).count();
            println!("ε {epsilon}: {:.2} % in {seconds:.1} s", right as f64 / 100.0);
        }
    }
    Ok(())
}
