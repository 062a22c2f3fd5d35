# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "google-protobuf" do
  fine note: "It only computes: no threads, no connections.",
       source: "https://github.com/protocolbuffers/protobuf/tree/main/ruby/ext/google/protobuf_c"
end
