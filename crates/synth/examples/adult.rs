//! x
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use demur_core::{Adjacency, Guarantee};
use demur_synth::*;
use std::process::Command;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "/work/shared/data/adult";
    let csv = Command::new("gzip").arg("-dc").arg(format!("{folder}/adult_discrete.csv.gz")).output()?.stdout;
    let csv = String::from_utf8(csv)?;
    let domain = std::fs::read_to_string(format!("{folder}/adult_discrete-domain.json"))?;
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let size = |name: &str| -> usize {
        let at = domain.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
        domain[at..].trim_start().chars().take_while(|c| c.is_ascii_digit()).collect::<String>().parse().unwrap()
    };
    let columns = Columns::new(names.iter().map(|name| (*name, size(name))))?;
    let mut codes = vec![vec![]; names.len()];
    for line in lines { for (column, value) in codes.iter_mut().zip(line.split(',')) { column.push(value.parse::<u32>()?); } }
    let truth = codes.clone();
    let table = Table::new(columns.clone(), codes)?;
    let n = truth[0].len();
    let arguments: Vec<String> = std::env::args().collect();
    let method = arguments[1].as_str();
    let seeds: usize = arguments[3].parse()?;
    for epsilon in arguments[2].split(',') {
        let guarantee = Guarantee::new(epsilon.parse()?, "1e-9".parse()?);
        let plan = match method {
            "mst" => Plan::mst(&columns, Adjacency::AddRemove, guarantee)?,
            _ => {
                let ways = std::env::var("WAYS").ok().and_then(|x| x.parse().ok()).unwrap_or(2);
                let cells = std::env::var("CELLS").ok().and_then(|x| x.parse().ok()).unwrap_or(1 << 20);
                if method == "mwem" { Plan::mwem(&columns, Adjacency::AddRemove, guarantee.epsilon, &Marginals::all(&columns, ways)?, cells)? } else { Plan::aim(&columns, Adjacency::AddRemove, guarantee, &Marginals::all(&columns, ways)?, cells)? }
            }
        };
        let (mut two, mut three, mut time) = (0.0, 0.0, 0.0);
        for _ in 0..seeds {
            let start = Instant::now();
            let model = plan.fit(&table, &mut demur_noise::Entropy::from_os()?, &mut |p| { if std::env::var("SHOW").is_ok() { eprintln!("{p:?}"); } std::ops::ControlFlow::Continue(()) })?.into_value();
            let t = start.elapsed().as_secs_f64();
            time += t;
            let tv = |ways| -> f64 {
                let workload = Marginals::all(&columns, ways).unwrap();
                let sizes = columns.sizes();
                let mut sum = 0.0; let mut count = 0.0;
                for (set, _) in workload.sets() {
                    let p = model.marginal(set).unwrap();
                    let mut q = vec![0.0; p.len()];
                    for row in 0..n { let at = set.iter().fold(0, |at, c| at * sizes[c] + truth[c][row] as usize); q[at] += 1.0 / n as f64; }
                    sum += p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0; count += 1.0;
                }
                sum / count
            };
            let (a, b) = (tv(2), if std::env::var("THREE").is_ok() { tv(3) } else { 0.0 });
            two += a; three += b;
            if std::env::var("SHOW").is_ok() { println!("  {a:.4} {b:.4} {t:.2}"); }
        }
        let k = seeds as f64;
        let memory = std::fs::read_to_string("/proc/self/status")?.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_owned();
        println!("{method} eps {epsilon}: 2-way {:.4} 3-way {:.4} time {:.2} {memory}", two / k, three / k, time / k);
    }
    Ok(())
}
