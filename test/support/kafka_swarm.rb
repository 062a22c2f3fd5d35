# frozen_string_literal: true

require "support/kafka_broker"
require "support/kafka_effects"
require "support/server_process"

module Support
  # For tests of nodes that consume from a Kafka broker: each has a topic with a few partitions.
  module KafkaSwarm
    TOPIC = "numbers" # the topic of test/fixtures/swarm/karafka
    PARTITIONS = 4
    NODES = 2
    PATIENCE = 60 # seconds: a rebalance takes some
    FATES = %w[worker.spawning worker.exited worker.killed worker.lost].freeze
    TROUBLE = /\A(?:worker\.(?:killed|unsafe)|mold\.lost|generation\.discarded|finding\.reported)\z/

    def setup
      @folder = Dir.mktmpdir("pando-kafka")
      @effects = KafkaEffects.new(@folder)
      @broker = KafkaBroker.new.start
      @broker.topic(TOPIC, PARTITIONS)
      @produced = 0
    end

    def teardown
      @server&.kill
      @broker&.stop
      @effects.close
      FileUtils.rm_rf(@folder)
    end

    private

    # @param environment [Hash{String => String}] for karafka.rb @param more [String] further keywords of the `node`
    #   line
    def start(environment = {}, more = "")
      @server = ServerProcess.new(listen: false, config: <<~RUBY, env: base.merge(environment))
        workers 0
        refork :manual
        node :karafka, count: #{NODES}, concurrency: 2, require: #{file.dump}#{more}
      RUBY
      @server.wait_past("generation.current", patience: PATIENCE)
    end

    def base
      KafkaBroker.bundle.environment.merge("KAFKA" => @broker.addresses, "EFFECTS" => @effects.path,
                                           "KARAFKA_ROOT_DIR" => @folder)
    end

    def file = File.join(KafkaBroker::FIXTURES, "karafka.rb")

    # Sends that many further messages to each partition.
    def produce(count)
      @broker.produce(TOPIC, @produced, count)
      @produced += count
    end

    # Sends messages until each node has consumed some: when a member joins late, the others may have consumed the first
    # ones.
    def consume_everywhere
      wait_until(timeout: PATIENCE, message: -> { "#{NODES} nodes that consume\n#{tail}" }) do
        produce(25)
        wait_for_messages
        nodes.count { |node| members.key?(node.pid) } == NODES
      end
    end

    # @param missing [Integer] messages that may still be missing
    def wait_for_messages(missing = 0, timeout: PATIENCE)
      count = (@produced * PARTITIONS) - missing
      wait_until(timeout: timeout, message: -> { "#{count} messages; there are #{@effects.count}\n#{tail}" }) do
        @effects.count >= count
      end
    end

    def nodes = @server.tree.titled("karafka")

    # @return [Hash{Integer => String}] name as a static member by process
    def members = @effects.look.members.dup

    def troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }
    def tail = @server.output[-4000..] || @server.output

    def assert_all_in_order
      PARTITIONS.times { |one| assert_equal (0...@produced).to_a, @effects.firsts[one], "partition #{one}" }
    end

    # Each process in a slot must be gone before the next one is ordered.
    def assert_successors_are_born_last
      fates = @server.events.select { |event| FATES.include?(event["event"]) }
      fates.group_by { |event| event["slot"] }.each do |slot, all|
        births = all.map { |event| event["event"] == "worker.spawning" }
        assert_equal births.each_index.map(&:even?), births, "births and deaths in slot #{slot} take turns"
      end
    end
  end
end
