//! A convolutional network and one of dense layers on handwritten digits, by noisy gradient descent.
//!
//! `cargo run --release -p demur-learn --example networks -- EPSILON EPOCHS [FILTER]` prints, for each network, the accuracy on the test set, how many examples were trained on in a second by the clock and in one of the
//! processor's time (all threads together, as Linux counts it), and σ/C. bench/peers/learning.py trains the same networks on the same data with opacus.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use demur_core::Guarantee;
use demur_learn::train::{Examples, Network, Plan, Recipe, Targets};
use demur_noise::Entropy;

const NETWORKS: [(&str, &str); 2] = [
    (
        "cnn",
        "28x28x1: convolution(16, 8, 2, 3), relu, pool(2, 1), convolution(32, 4, 2, 0), relu, pool(2, 1), dense(32), relu -> 10 classes",
    ),
    ("mlp", "28x28x1: dense(128), relu -> 10 classes"),
];
const BATCH: u64 = 512;

fn read(name: &str, header: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/mnist");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(File::open(folder.join(name))?).read_to_end(&mut bytes)?;
    Ok(bytes.split_off(header))
}

fn images(name: &str) -> Result<Vec<f32>, Box<dyn Error>> {
    Ok(read(name, 16)?.iter().map(|&pixel| (f32::from(pixel) / 255.0 - 0.1307) / 0.3081).collect())
}

fn labels(name: &str) -> Result<Vec<u32>, Box<dyn Error>> {
    Ok(read(name, 8)?.iter().map(|&label| u32::from(label)).collect())
}

/// Seconds that the processor has worked for this program.
fn worked() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let epsilon = arguments.first().map_or("3", String::as_str);
    let epochs: u64 = arguments.get(1).map_or(Ok(3), |text| text.parse())?;
    let filter = arguments.get(2).map_or("", String::as_str);
    let (test, truth) = (images("t10k-images-idx3-ubyte.gz")?, labels("t10k-labels-idx1-ubyte.gz")?);
    let targets = Targets::Classes(labels("train-labels-idx1-ubyte.gz")?);
    let pixels = images("train-images-idx3-ubyte.gz")?;
    let entropy = &mut Entropy::from_os()?;
    for (name, text) in NETWORKS.iter().filter(|(name, _)| name.contains(filter)) {
        let network: Network = text.parse()?;
        let examples = Examples::new(network.input(), pixels.clone(), targets.clone())?;
        let recipe =
            Recipe { batch: BATCH, steps: epochs * 60_000 / BATCH, clip: 1.0, rate: 0.25, momentum: 0.9 };
        let guarantee = Guarantee::new(epsilon.parse()?, "1e-5".parse()?);
        let plan = Plan::new(network, 60_000, guarantee, recipe)?;
        let (started, before) = (Instant::now(), worked()?);
        let model = plan.fit(&examples, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
        let seen = (recipe.steps * BATCH) as f64;
        let (speed, work) = (seen / started.elapsed().as_secs_f64(), seen / (worked()? - before));
        let right = model.classify(&test)?.iter().zip(&truth).filter(|(a, b)| a == b).count();
        println!("{name} {:.4} {speed:.0} {work:.0} {:.4}", right as f64 / 1e4, plan.noise_multiplier());
    }
    Ok(())
}
