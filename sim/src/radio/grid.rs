//! Finding who is near without looking at everybody: [`Grid`].

use crate::mobility::Location;

/// Points sorted into square cells. Those within one cell's side of a point lie in its cell and the
/// eight around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    /// Cell (row, column) and point, in order.
    cells: Vec<((i32, i32), u32)>,
    side_m: f64,
}

impl Grid {
    /// Sorts the points into cells of this side.
    pub(super) fn fill(&mut self, points: &[Option<Location>], side_m: f64) {
        self.side_m = side_m.max(1.0);
        self.cells.clear();
        for (index, point) in (0..).zip(points) {
            if let Some(point) = point {
                self.cells.push((cell_of(*point, self.side_m), index));
            }
        }
        self.cells.sort_unstable();
    }

    /// Hands all points in the nine cells around `point` to `take`: all within one side, and more.
    pub(super) fn around(&self, point: Location, mut take: impl FnMut(u32)) {
        let (row, column) = cell_of(point, self.side_m);
        for row in row.saturating_sub(1)..=row.saturating_add(1) {
            let first = (row, column.saturating_sub(1));
            let last = (row, column.saturating_add(1));
            let start = self.cells.partition_point(|(cell, _)| *cell < first);
            let near = self.cells.iter().skip(start).take_while(|(cell, _)| *cell <= last);
            near.for_each(|&(_, index)| take(index));
        }
    }
}

/// Positions far outside any map saturate to the outermost cell, where they only cost time.
#[allow(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
fn cell_of(point: Location, side_m: f64) -> (i32, i32) {
    let cell = |metres: f64| (metres / side_m).floor() as i32;
    (cell(point.y_m), cell(point.x_m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    #[test]
    fn finds_everyone_within_one_side_as_looking_at_everybody_does() {
        let mut dice = Dice::new(1, 2);
        let mut draw = || dice.below(200_000) as f64 / 100.0 - 1000.0;
        let points: Vec<_> = (0..400).map(|_| Some(Location::new(draw(), draw()))).collect();
        let mut grid = Grid::default();
        grid.fill(&points, 150.0);
        for point in points.iter().flatten() {
            let is_near = |other: &Location| point.distance_m(*other) <= 150.0;
            let mut found = Vec::new();
            grid.around(*point, |index| {
                if points[index as usize].as_ref().is_some_and(is_near) {
                    found.push(index);
                }
            });
            found.sort_unstable();
            let all = (0..).zip(&points).filter(|(_, other)| other.as_ref().is_some_and(is_near));
            assert_eq!(found, all.map(|(index, _)| index).collect::<Vec<u32>>());
        }
    }
}
