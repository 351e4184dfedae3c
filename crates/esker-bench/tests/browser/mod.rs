//! Chromium without a window. Without Chromium the tests that need it say so and pass.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Chromium that can be started.
pub struct Browser {
    program: PathBuf,
}

impl Browser {
    /// Where it is installed, by the names that it has.
    pub fn find() -> Option<Browser> {
        let named = std::env::var_os("ESKER_CHROMIUM").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let on_path = std::env::split_paths(&path)
            .flat_map(|dir| names.map(|name| dir.join(name)))
            .find(|file| file.is_file());
        let found = named.or(on_path).map(|program| Browser { program });
        if found.is_none() {
            eprintln!(
                "note: no Chromium here: the report is not opened in a browser (apt-get install chromium)"
            );
        }
        found
    }

    fn run(&self, arguments: &[String]) -> String {
        // A profile of its own: tests run side by side.
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(&self.program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--hide-scrollbars", "--no-first-run", "--disable-extensions"])
            .arg("--allow-file-access-from-files")
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--force-device-scale-factor=1"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(arguments)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "Chromium ended with {}: {errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Opens a page that has the check in it, and returns what it found.
    pub fn self_check(&self, page: &Path, width: u32, dark: bool) -> Value {
        let framed = Framed::new(page, width, 900);
        let mut arguments = view(framed.page(), width, 900, dark);
        arguments.insert(0, "--dump-dom".to_string());
        let dom = self.run(&arguments);
        let found =
            dom.split("<pre id=\"selfcheck\">").nth(1).and_then(|s| s.split("</pre>").next());
        let found = found.unwrap_or_else(|| panic!("the page did not check itself: {dom:.2000}"));
        let json = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        serde_json::from_str(&json).unwrap()
    }

    /// A picture of the page's upper part.
    pub fn screenshot(&self, page: &Path, width: u32, dark: bool, picture: &Path) {
        let framed = Framed::new(page, width, HEIGHT);
        let mut arguments = view(framed.page(), width, HEIGHT, dark);
        arguments.insert(0, format!("--screenshot={}", picture.display()));
        self.run(&arguments);
        assert!(std::fs::metadata(picture).unwrap().len() > 10_000, "{}", picture.display());
    }

    /// The page as it is printed.
    pub fn print(&self, page: &Path, pdf: &Path) {
        let mut arguments = view(page, 1280, 900, true);
        arguments.insert(0, "--no-pdf-header-footer".to_string());
        arguments.insert(0, format!("--print-to-pdf={}", pdf.display()));
        self.run(&arguments);
    }
}

/// Pixels of a screenshot from the top.
const HEIGHT: u32 = 6000;

/// The page in a frame: a window is at least 500 px wide, a frame is as narrow as a phone.
struct Framed {
    page: PathBuf,
    is_frame: bool,
}

impl Framed {
    fn new(page: &Path, width: u32, height: u32) -> Framed {
        if width >= 500 {
            return Framed { page: page.to_path_buf(), is_frame: false };
        }
        let name = page.file_name().unwrap().to_str().unwrap();
        let frame = page.with_file_name(format!("frame-{width}-{height}-{name}"));
        let html = format!(
            "<!DOCTYPE html><meta charset=utf-8><meta name=color-scheme content=\"light dark\">\
             <body style=\"margin:0\"><iframe src=\"{name}\" width={width} height={height} \
             style=\"border:0\"></iframe></body>"
        );
        std::fs::write(&frame, html).unwrap();
        Framed { page: frame, is_frame: true }
    }

    fn page(&self) -> &Path {
        &self.page
    }
}

impl Drop for Framed {
    fn drop(&mut self) {
        if self.is_frame {
            let _ = std::fs::remove_file(&self.page);
        }
    }
}

fn view(page: &Path, width: u32, height: u32, dark: bool) -> Vec<String> {
    vec![
        format!("--window-size={width},{height}"),
        format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }),
        format!("file://{}", page.canonicalize().unwrap().display()),
    ]
}
