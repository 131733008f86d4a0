//! The same rows in CSV and in Parquet files of any layout give the same counts.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use demur_engine::{Ask, Embedded, Project, Quote};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

const ROWS: i64 = 5000;

/// Keys short and long, present and missing, some of them once.
fn key(row: i64) -> Option<String> {
    match row * 7919 % 13 {
        0 => None,
        1 => Some(String::new()),
        2 => Some(format!("only in row {row}")),
        rest => Some("a rather long key, ".repeat(rest as usize % 4) + &rest.to_string()),
    }
}

fn columns() -> RecordBatch {
    let rows = || 0..ROWS;
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values(rows().map(|row| row * 31 % 700)))),
        ("k", Arc::new(rows().map(key).collect::<StringArray>())),
        ("x", Arc::new(rows().map(|row| (row % 11 != 0).then_some(row % 90)).collect::<Int64Array>())),
        (
            "r",
            Arc::new(
                rows().map(|row| (row % 7 != 0).then_some(row as f64 / 100.0)).collect::<Float64Array>(),
            ),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn catalog(folder: &Path, file: &str, unit: &str) -> Project {
    let limits = if unit == "row" { "" } else { "max_groups_per_unit = 3\nmax_rows_per_group = 2\n" };
    let text = format!(
        "[budget]\nname = \"t\"\ndelta = 1e-6\n[tables.t]\nfiles = \"{file}\"\nunit = \"{unit}\"\n{limits}\
         [tables.t.columns]\nid = {{ type = \"int64\" }}\nk = {{ type = \"string\" }}\n\
         x = {{ type = \"int64\", low = 0, high = 50 }}\nr = {{ type = \"float64\", low = 0, high = 40 }}\n"
    );
    std::fs::write(folder.join("demur.toml"), text).unwrap();
    Project::open(folder).unwrap()
}

/// Key by key what was counted, in an order of its own.
fn counted(folder: &Path, file: &str, unit: &str, sql: &str) -> Vec<String> {
    let project = catalog(folder, file, unit);
    let ask = Ask { sql: sql.to_owned(), epsilon: Some("1".to_owned()), ..Ask::default() };
    let quote = Quote::make(&project, &ask).unwrap();
    let tally = Embedded::new(folder).unwrap().tally(&quote.bounded, [7, 11]).unwrap();
    let group = |group: usize| {
        let keys = tally.keys.iter().map(|key| {
            datafusion::arrow::util::display::array_value_to_string(key, group).unwrap()
                + if key.is_null(group) { "∅" } else { "" }
        });
        let numbers = tally.measures.iter().map(|numbers| format!("{:?}", numbers.of(group)));
        let words: Vec<_> = keys.chain([tally.units[group].to_string()]).chain(numbers).collect();
        words.join(" | ")
    };
    let mut lines: Vec<_> = (0..tally.units.len()).map(group).collect();
    lines.sort();
    lines
}

/// Far more files than threads: each thread reads one after the other, and none is left out.
#[test]
fn a_table_of_many_files_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("many")).unwrap();
    let (mut whole, head) = ("id,k,x,r\n".to_owned(), "id,k,x,r\n");
    for file in 0..700 {
        let row = format!("{},{},{},1.5\n", file % 90, file % 5, file % 40);
        std::fs::write(folder.path().join(format!("many/{file}.csv")), format!("{head}{row}")).unwrap();
        whole += &row;
    }
    std::fs::write(folder.path().join("one.csv"), whole).unwrap();
    for unit in ["row", "id"] {
        let sql = "SELECT k, COUNT(*), SUM(x), AVG(r) FROM t GROUP BY k";
        let of = |file: &str| counted(folder.path(), file, unit, sql);
        assert_eq!(of("many/*.csv"), of("one.csv"), "{unit}");
    }
}

/// One string of somebody whose bytes are no text, in a column that says it holds texts.
#[test]
fn a_string_that_is_no_text_is_null() {
    const MARK: &str = "no text is here";
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = 200_000;
    let texts = |odd: Option<&str>| -> ArrayRef {
        let text = |row: i64| if row == 110_000 { odd.map(str::to_owned) } else { key(row) };
        Arc::new((0..rows).map(text).collect::<StringArray>())
    };
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row % 700)));
    for with_dictionaries in [true, false] {
        for (file, odd) in [("odd.parquet", Some(MARK)), ("null.parquet", None)] {
            let batch = RecordBatch::try_from_iter_with_nullable([
                ("id", Arc::clone(&id), true),
                ("k", texts(odd), true),
                ("x", Arc::clone(&id), true),
                ("r", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64))), true),
            ]);
            let batch = batch.unwrap();
            let properties = WriterProperties::builder()
                .set_dictionary_enabled(with_dictionaries)
                .set_max_row_group_row_count(Some(150_000))
                .build();
            let writer = File::create(folder.join(file)).unwrap();
            let mut writer = ArrowWriter::try_new(writer, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
        let mut bytes = std::fs::read(folder.join("odd.parquet")).unwrap();
        let at = bytes.windows(MARK.len()).position(|window| window == MARK.as_bytes()).unwrap();
        bytes[at + 3] = 0xff;
        std::fs::write(folder.join("odd.parquet"), bytes).unwrap();
        for unit in ["id", "row"] {
            for sql in [
                "SELECT k, COUNT(*), SUM(x) FROM t GROUP BY k",
                "SELECT COUNT(DISTINCT k), MEDIAN(r) FROM t WHERE k IS NULL OR k LIKE '%n%'",
                "SELECT UPPER(k) AS u, COUNT(k) FROM t GROUP BY 1",
            ] {
                let expected = counted(folder, "null.parquet", unit, sql);
                assert_eq!(counted(folder, "odd.parquet", unit, sql), expected, "{sql}");
            }
        }
    }
}

#[test]
fn every_layout_of_a_file_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let batch = columns();
    let mut csv = "id,k,x,r\n".to_owned();
    for row in 0..ROWS {
        let cell = |value: Option<String>| value.unwrap_or_else(|| "no number".to_owned());
        let number = |present: bool, text: String| cell(present.then_some(text));
        // A missing key cannot be written in CSV: such rows are left out of both.
        let Some(key) = key(row) else { continue };
        csv += &format!(
            "{},\"{key}\",{},{}\n",
            row * 31 % 700,
            number(row % 11 != 0, (row % 90).to_string()),
            number(row % 7 != 0, (row as f64 / 100.0).to_string())
        );
    }
    std::fs::write(folder.join("plain.csv"), csv).unwrap();
    let snappy = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let layouts = [
        ("one.parquet", snappy.clone()),
        (
            "groups.parquet",
            snappy
                .clone()
                .set_max_row_group_row_count(Some(333))
                .set_data_page_row_count_limit(100)
                .set_write_batch_size(50),
        ),
        ("strings.parquet", snappy.clone().set_dictionary_enabled(false)),
        ("overflow.parquet", snappy.set_dictionary_page_size_limit(64)),
        (
            "zstd.parquet",
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())),
        ),
    ];
    for (name, properties) in layouts {
        let file = File::create(folder.join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for (unit, sql) in [
            ("id", "SELECT k, COUNT(*), SUM(x), AVG(r) FROM t WHERE k IS NOT NULL GROUP BY k"),
            ("id", "SELECT k, COUNT(DISTINCT id) FROM t WHERE x > 10 AND k IS NOT NULL GROUP BY k"),
            ("row", "SELECT k, COUNT(*), COUNT(x), MEDIAN(x) FROM t WHERE k IS NOT NULL GROUP BY k"),
            ("row", "SELECT COUNT(*) FROM t WHERE k IS NOT NULL"),
            ("row", "SELECT x, COUNT(*) FROM t WHERE k LIKE '%only%' GROUP BY x"),
        ] {
            let expected = counted(folder, "plain.csv", unit, sql);
            assert!(!expected.is_empty());
            assert_eq!(counted(folder, name, unit, sql), expected, "{name}: {sql}");
        }
        // Keys that are read as the file's dictionary, the missing one among them, beside the same as plain strings.
        for unit in ["id", "row"] {
            let [alone, beside] = ["k IS NOT NULL OR k IS NULL", "x > -1 OR x IS NULL"].map(|all| {
                counted(
                    folder,
                    name,
                    unit,
                    &format!("SELECT k, COUNT(*), SUM(x) FROM t WHERE {all} GROUP BY k"),
                )
            });
            assert_eq!(alone, beside, "{name} {unit}");
        }
    }
}
