//! How pictures look that are files of their own, for a README: in colours that can be read on white and on black, since such
//! a file is not told which of the two is behind it.

/// The style sheet of such a file.
pub(crate) const STYLE: &str = "\
text{font-family:'Helvetica Neue',Helvetica,Arial,'Liberation Sans',sans-serif;fill:#6b7580}\
.title{font-size:14px;font-weight:700}\
.label{font-size:11.5px}\
.small{font-size:10px}\
.name{font-weight:700}\
.grid{stroke:#80808040;stroke-width:1}\
.axis{stroke:#808890;stroke-width:1}\
.ours{fill:#d0560c}.peer{fill:#99a2ab}\
.published{fill:none;stroke:#808890;stroke-dasharray:3 2}\
.whisker{stroke:#50575f;stroke-width:1.4}\
text.strong{font-weight:700;fill:#d0560c}";
