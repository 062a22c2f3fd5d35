# frozen_string_literal: true

require "io/wait"
require_relative "../../bench/support/bundle"

module Support
  # A Kafka cluster of one broker in a separate process, reachable over TCP: librdkafka's own mock for tests. It keeps
  # messages, offsets and consumer groups in memory, and ends with the process that started it.
  class KafkaBroker
    FIXTURES = File.expand_path("../fixtures/swarm/karafka", __dir__)
    SCRIPT = File.join(FIXTURES, "broker.rb")
    PATIENCE = 120 # seconds for one answer

    # @return [Bench::Bundle] Karafka and its dependencies
    def self.bundle = @bundle ||= Bench::Bundle.new("swarm-karafka", File.join(FIXTURES, "Gemfile")).prepare

    # @return [String] such as "127.0.0.1:41234"
    attr_reader :addresses

    # @return [self] once it accepts connections
    def start
      @pipe = IO.popen([self.class.bundle.environment, RbConfig.ruby, "-W0", SCRIPT], "r+", err: File::NULL)
      @addresses = answer
      self
    end

    def topic(name, partitions) = tell("topic #{name} #{partitions}")

    # Sends the same number of messages to each partition; their payloads are numbers from `first` on.
    def produce(name, first, count) = tell("produce #{name} #{first} #{count}")

    # Closes all connections and accepts no new ones.
    def down = tell("down")
    def up = tell("up")

    def stop
      @pipe&.close
      @pipe = nil
    end

    private

    def tell(line)
      @pipe.puts(line)
      answer.then { |said| raise "the Kafka broker, told to #{line}: #{said}" unless said == "ok" }
    end

    def answer
      @pipe.wait_readable(PATIENCE) || raise("the Kafka broker did not answer within #{PATIENCE} s")
      @pipe.gets&.chomp || raise("the Kafka broker has ended")
    end
  end
end
