//! Bars from left to right, so that names of any length can be read, each with its interval.

use kuva::render::render::TextAnchor;
use serde_json::Value;

use super::canvas::{BLACK, Canvas, GREY, GRID, MEDIUM, SMALL, Scale, TOP, widest};
use super::{Picture, Point, label, labels};
use crate::plot::INKS;

/// The most groups that are drawn; of more, those with the largest values are.
pub(super) const MOST: usize = 60;
/// How wide the part with the bars is.
const WIDTH: f64 = 560.0;

/// Bars that stand together under one name.
pub(super) struct Group<'a> {
    pub(super) name: String,
    /// For each ink, its point if there is one.
    pub(super) points: Vec<Option<&'a Point>>,
}

/// Groups, and what their inks stand for.
pub(super) struct Grouped<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// The values of the key that the inks tell apart; none if there is one ink.
    pub(super) inks: Vec<&'a Value>,
    pub(super) left_out: String,
}

/// With two keys or more and few values of the last, that one is told by ink.
pub(super) fn grouped(picture: &Picture) -> Grouped<'_> {
    let last = picture.keys.len().saturating_sub(1);
    let mut inks = if last > 0 { picture.values_of(last) } else { Vec::new() };
    if inks.len() > INKS.len() {
        inks.clear();
    }
    let named = if inks.is_empty() { picture.keys.len() } else { last };
    let mut groups: Vec<(&[Value], Group<'_>)> = Vec::new();
    for point in &picture.points {
        let key = &point.keys[..named];
        let place = groups.iter().position(|(found, _)| *found == key).unwrap_or_else(|| {
            let empty = vec![None; inks.len().max(1)];
            groups.push((key, Group { name: labels(key), points: empty }));
            groups.len() - 1
        });
        let ink = inks.iter().position(|value| **value == point.keys[last]).unwrap_or(0);
        groups[place].1.points[ink] = Some(point);
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().map(|(_, group)| group).collect();
    let left_out = keep_largest(&mut groups);
    Grouped { groups, inks, left_out }
}

/// Leaves the largest groups in their order, and says so.
fn keep_largest(groups: &mut Vec<Group<'_>>) -> String {
    let all = groups.len();
    if all <= MOST {
        return String::new();
    }
    let size =
        |group: &Group<'_>| group.points.iter().flatten().map(|point| point.value).fold(f64::MIN, f64::max);
    let mut sizes: Vec<f64> = groups.iter().map(size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes[MOST - 1];
    let mut room = MOST;
    groups.retain(|group| {
        let kept = room > 0 && size(group) >= least;
        room -= usize::from(kept);
        kept
    });
    format!("the {MOST} largest of {all} groups")
}

pub(super) fn draw(picture: &Picture) -> Canvas {
    let Grouped { groups, inks, left_out } = grouped(picture);
    let thick = if inks.is_empty() { 18.0 } else { 13.0 };
    let high = thick * inks.len().max(1) as f64 + 9.0;
    let left = 28.0 + widest(groups.iter().map(|group| &group.name), SMALL).max(40.0);
    let top = TOP + if inks.is_empty() { 0.0 } else { 16.0 };
    let bottom = top + high * groups.len().max(1) as f64 + 6.0;
    let mut canvas =
        Canvas::new(left + WIDTH + 40.0, bottom + 54.0, &picture.title(), &picture.note(&left_out));
    let legend: Vec<_> = inks.iter().zip(INKS).map(|(value, ink)| (label(value), ink)).collect();
    if let Some(key) = picture.keys.last().filter(|_| !legend.is_empty()) {
        canvas.legend(key, &legend);
    }
    let (low, most) = picture.range();
    let scale = Scale::rounded((low.min(0.0), most.max(0.0)), left, left + WIDTH);
    for (value, text) in scale.marks() {
        canvas.line((scale.at(value), top), (scale.at(value), bottom), GRID, 1.0);
        canvas.words((scale.at(value), bottom + 17.0), &text, SMALL, GREY, TextAnchor::Middle);
    }
    for (index, group) in groups.iter().enumerate() {
        let above = top + high * index as f64 + 6.0;
        let middle = above + thick * group.points.len() as f64 / 2.0 + 4.0;
        canvas.words((left - 8.0, middle), &group.name, SMALL, BLACK, TextAnchor::End);
        for (ink, point) in group.points.iter().enumerate() {
            let Some(point) = point else { continue };
            let upper = above + thick * ink as f64;
            canvas.area((scale.at(0.0), upper), (scale.at(point.value), upper + thick - 1.0), INKS[ink]);
            if point.ends.is_some() {
                let y = upper + (thick - 1.0) / 2.0;
                canvas.whisker((scale.at(point.low()), y), (scale.at(point.high()), y), 4.0);
            }
        }
    }
    canvas.line((scale.at(0.0), top), (scale.at(0.0), bottom), GREY, 1.2);
    canvas.words((left + WIDTH / 2.0, bottom + 40.0), &picture.answer, MEDIUM, BLACK, TextAnchor::Middle);
    canvas
}
