//! `report.html`: one file with everything in it, no network, no script.

mod details;
mod first;
mod page;
mod ratios;
mod sections;

use super::first::First;
use super::model::{Model, suite_title};
use super::palette;
use page::Page;

const STYLE: &str = include_str!("style.css");

/// The page.
pub(crate) fn render(model: &Model) -> String {
    let mut page = Page::default();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.element("title", "", "Esker beside other embedded stores");
    page.raw(&format!("\n<style>\n{STYLE}</style>\n</head>\n<body>\n"));
    header(&mut page, model);
    page.raw("<main>\n");
    first::write(&mut page, &First::of(model));
    contents(&mut page, model);
    ratios::worst(&mut page, model);
    ratios::write(&mut page, model);
    details::how_to_read(&mut page);
    for (suite, of) in model.suites() {
        sections::suite(&mut page, model, suite, of);
    }
    details::machine(&mut page, model);
    details::engines(&mut page, model);
    details::commands(&mut page, model);
    page.raw("</main>\n");
    footer(&mut page, model);
    page.raw("</body>\n</html>\n");
    page.out
}

fn header(page: &mut Page, model: &Model) {
    page.raw("<header>\n");
    page.element("h1", "", "Esker beside other embedded stores");
    let date = model.machine().and_then(|r| r.date.clone());
    let when =
        date.map_or_else(String::new, |d| format!(" Measured {}.", super::format::moment(&d)));
    if let Some(unquiet) = model.caution() {
        page.element("p", "unquiet", &unquiet);
    }
    page.element("p", "lead", &ratios::summary(model));
    page.element("p", "quiet", &format!("Machine: {}.{when}", model.machine_line()));
    page.raw("</header>\n");
}

/// What else there is, and what could not be measured; a phone shows pictures before it.
fn contents(page: &mut Page, model: &Model) {
    let gone: Vec<&str> = model.not_installed().iter().map(|(e, _)| palette::shown(e)).collect();
    if !gone.is_empty() {
        let text = format!(
            "Not installed there, and so not in the pictures: {}. The table of engines says how to get them.",
            gone.join(", ")
        );
        page.element("p", "quiet", &text);
    }
    page.raw("<nav aria-label=\"Contents\"><ul>\n");
    let mut link = |id: &str, text: &str| {
        page.raw(&format!("<li><a href=\"#{id}\">{}</a></li>\n", page::escape(text)));
    };
    link("worst", "Where Esker is worst");
    link("ratios", "All rows");
    for (suite, _) in model.suites() {
        link(&page::anchor(suite), suite_title(suite));
    }
    link("machine", "The machine");
    link("engines", "Engines and settings");
    link("commands", "Commands");
    page.raw("</ul></nav>\n");
}

fn footer(page: &mut Page, model: &Model) {
    page.raw("<footer>\n");
    let version = model.records().find_map(|r| r.bench_version.clone());
    let version = version.map_or_else(String::new, |v| format!(" {v}"));
    let text = format!(
        "Drawn by esker bench{version} from results.jsonl, which has everything shown here and more; \
         `esker bench report DIR` draws it again."
    );
    page.element("p", "quiet", &text);
    page.raw("</footer>\n");
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
