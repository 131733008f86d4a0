//! The table, and whether the targets are met.

/// What one line of the table says, in nanoseconds per item.
pub struct Row {
    what: String,
    ours: f64,
    opendp: Option<f64>,
    floats: Option<f64>,
}

impl Row {
    pub fn new(what: impl Into<String>, ours: f64) -> Self {
        Self { what: what.into(), ours, opendp: None, floats: None }
    }

    pub fn opendp(self, time: f64) -> Self {
        Self { opendp: Some(time), ..self }
    }

    pub fn floats(self, time: f64) -> Self {
        Self { floats: Some(time), ..self }
    }

    /// How many times longer opendp takes.
    fn times_faster(&self) -> f64 {
        self.opendp.map_or(f64::NAN, |time| time / self.ours)
    }

    /// Our time as a multiple of the float sampler's.
    fn times_floats(&self) -> f64 {
        self.floats.map_or(f64::NAN, |time| self.ours / time)
    }

    fn print(&self) {
        let nanoseconds = |time: Option<f64>| time.map_or("–".into(), number);
        let ratio = |ratio: f64, sign: &str| {
            if ratio.is_nan() { "–".into() } else { format!("{}{sign}", number(ratio)) }
        };
        println!(
            "| {:<47} | {:>6} | {:>8} | {:>7} | {:>6} | {:>6} |",
            self.what,
            number(self.ours),
            nanoseconds(self.opendp),
            ratio(self.times_faster(), "×"),
            nanoseconds(self.floats),
            ratio(self.times_floats(), "×"),
        );
    }
}

/// Three digits are all that a busy machine can vouch for.
fn number(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// All rows of a run.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Keeps a row; progress goes to the other stream.
    pub fn add(&mut self, row: Row) {
        eprintln!("measured {}", row.what);
        self.rows.push(row);
    }

    pub fn print(&self) {
        println!(
            "| {:<47} | {:>6} | {:>8} | {:>7} | {:>6} | {:>6} |",
            "ns per item", "ours", "opendp", "faster", "floats", "ratio"
        );
        println!("|---|---:|---:|---:|---:|---:|");
        self.rows.iter().for_each(Row::print);
        println!();
        self.print_targets();
    }

    /// The row whose name begins so; the first of several.
    fn row(&self, name: &str) -> &Row {
        self.rows.iter().find(|row| row.what.starts_with(name)).expect("a row that was measured")
    }

    fn print_targets(&self) {
        println!("| target | Laplace | Gaussian |");
        println!("|---|---|---|");
        let at_least =
            |least: f64| move |row: &Row| Check::new(row.times_faster() >= least, row.times_faster(), "×");
        let below = |most: f64| move |row: &Row| Check::new(row.ours <= most, row.ours, " ns");
        let floats = |row: &Row| Check::new(row.times_floats() <= 2.0, row.times_floats(), "×");
        let both = |target: &str, rows: [&str; 2], check: &dyn Fn(&Row) -> Check| {
            let [a, b] = rows.map(|name| check(self.row(name)).to_string());
            println!("| {target} | {a} | {b} |");
        };
        let noise = ["noise: Laplace, scale 10", "noise: Gaussian, scale 10"];
        let large = ["noise: Laplace, scale 2^40", "noise: Gaussian, scale 2^40"];
        both("integer noise, scale 10: ≥ 150× opendp", noise, &at_least(150.0));
        both(
            "integer release, scale 10: ≥ 150× opendp",
            ["integers: Laplace", "integers: Gaussian"],
            &at_least(150.0),
        );
        both("integer noise, scale 10: ≤ 2× the time of floats", noise, &floats);
        println!(
            "| release of reals: ≥ 400× opendp (Laplace), ≥ 1000× (Gaussian) | {} | {} |",
            at_least(400.0)(self.row("reals: Laplace")),
            at_least(1000.0)(self.row("reals: Gaussian"))
        );
        both("noise at scale 2^40: ≤ 60 ns", large, &below(60.0));
        both("scalar draw: ≤ 60 ns", ["scalar: draw Laplace", "scalar: draw Gaussian"], &below(60.0));
        both(
            "scalar release: ≤ 60 ns",
            ["scalar: release Laplace", "scalar: release Gaussian"],
            &below(60.0),
        );
        both("stretch: integer noise ≥ 300× opendp", noise, &at_least(300.0));
        both("stretch: integer noise ≤ 7 ns", noise, &below(7.0));
        println!();
        println!("| target | exponential | permute-and-flip |");
        println!("|---|---|---|");
        let choices = ["choice: exponential", "choice: permute-and-flip"];
        both("choice of 10^6: ≤ 20 ns per candidate", choices, &below(20.0));
    }
}

/// A target, and what was measured against it.
struct Check {
    met: bool,
    value: f64,
    unit: &'static str,
}

impl Check {
    fn new(met: bool, value: f64, unit: &'static str) -> Self {
        Self { met, value, unit }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.met { "met" } else { "NOT met" };
        write!(f, "{verdict}: {}{}", number(self.value), self.unit)
    }
}
