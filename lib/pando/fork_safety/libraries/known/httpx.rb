# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "httpx" do
  yours since: "1.5.0",
        note: "A persistent session without `close_on_fork` goes on with its parent's connections. Others are fine.",
        advice: "HTTPX.plugin(:persistent, close_on_fork: true)",
        source: "https://github.com/HoneyryderChuck/httpx/blob/v1.5.0/doc/release_notes/1_5_0.md"
  yours before: "1.5.0",
        note: "A persistent session goes on with its parent's connections. Others are fine.",
        advice: "before_fork { SESSION.close }",
        source: "https://github.com/HoneyryderChuck/httpx/blob/v1.5.0/doc/release_notes/1_5_0.md"
end
