# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "rdkafka" do
  handled note: "A fork takes none of librdkafka's threads along, and a child's copy of a client is of no use. " \
                "A worker in which one is open is not promoted. Open none while the app is loaded.",
          advice: "before_fork { PRODUCER.close }, and make a new one on the next use: then workers can be promoted",
          source: "https://github.com/karafka/rdkafka-ruby#forking"
  threads(/\Ardk:/, unsafe: true)
end
