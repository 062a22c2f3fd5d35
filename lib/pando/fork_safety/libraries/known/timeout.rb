# frozen_string_literal: true

require "rbconfig"

Pando::ForkSafety::Libraries::Known.describe "timeout" do
  fine note: "Its thread is started anew by the first Timeout.timeout of a child.",
       source: "https://github.com/ruby/timeout/blob/v0.3.0/lib/timeout.rb"
  folders = ["/timeout-[^/]+/lib", "/rubygems/vendor/timeout/lib", "\\A#{Regexp.escape(RbConfig::CONFIG["rubylibdir"])}"]
  revives_threads at: %r{(#{folders.join("|")})/timeout\.rb:\d+\z}
end
