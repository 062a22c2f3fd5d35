# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "waterdrop" do
  yours since: "2.0.0",
        note: "A producer that was used before the fork raises ProducerUsedInParentProcess in the child. A worker " \
              "in which one is open is not promoted, see rdkafka.",
        advice: "before_fork { PRODUCER.close }, and make a new one on the next use",
        source: "https://github.com/karafka/waterdrop/blob/v2.8.0/lib/waterdrop/producer.rb"
end
