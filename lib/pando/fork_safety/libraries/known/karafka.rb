# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "karafka" do
  fine note: "In a process that serves requests it has a producer only: see waterdrop.",
       source: "https://github.com/karafka/karafka/blob/master/lib/karafka.rb"
end
