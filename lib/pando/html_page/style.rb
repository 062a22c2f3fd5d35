# frozen_string_literal: true

module Pando
  module HtmlPage
    # Light and dark, as the reader has it.
    STYLE = <<~CSS
      :root { color-scheme: light dark; --error: #c62828; --warning: #b26a00; --note: #55707f; --good: #2e7d32;
              --line: #8888; --mold: #7e57c2; --worker: #0288d1; --own: #ef6c00; --shared: #90a4ae; }
      body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
      h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
      table { border-collapse: collapse; width: 100%; } th { text-align: left; }
      td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; vertical-align: top; }
      code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
      .verdict { font-weight: 600; } .clean { color: var(--good); } .failing { color: var(--error); }
      tr.error td:first-child { color: var(--error); font-weight: 600; }
      tr.warning td:first-child { color: var(--warning); font-weight: 600; }
      tr.note td:first-child { color: var(--note); } tr.known { opacity: .6; }
      svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
      .mold { fill: var(--mold); } .worker { fill: var(--worker); } .box text { fill: #fff; }
      .edge { stroke: var(--line); stroke-width: 1.5; fill: none; }
      .own { fill: var(--own); } .part { fill: var(--shared); } .dot { fill: var(--error); }
    CSS
  end
end
