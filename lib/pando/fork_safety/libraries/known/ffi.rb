# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "ffi" do
  fine since: "1.17.1",
       note: "The thread that runs callbacks is started again in a child.",
       source: "https://github.com/ffi/ffi/blob/v1.17.1/CHANGELOG.md"
end
