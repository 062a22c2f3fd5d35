# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "mini_racer" do
  yours since: "0.6.1",
        note: "V8 runs threads of its own, unless it is set to use none.",
        advice: "MiniRacer::Platform.set_flags!(:single_threaded) before the first MiniRacer::Context",
        source: "https://github.com/rubyjs/mini_racer#fork-safety"
end
