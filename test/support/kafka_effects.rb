# frozen_string_literal: true

module Support
  # What the consumers of test/fixtures/swarm/karafka have left: a line for each message, in the order of time.
  class KafkaEffects
    # @return [String]
    attr_reader :path
    # @return [Hash{Integer => String}] process => its name as a static member
    attr_reader :members

    def initialize(folder)
      @path = File.join(folder, "effects")
      File.write(@path, "")
      @file = File.open(@path)
      @firsts = Hash.new { |hash, partition| hash[partition] = {} }
      @members = {}
      @lines = 0
    end

    # Kafka promises an order within a partition, and at least once: what comes again has come before.
    #
    # @return [Hash{Integer => Array<Integer>}] partition => its messages in the order in which they first came
    def firsts = look && @firsts.transform_values(&:keys)

    # @return [Integer] messages that were consumed at least once
    def count = look && @firsts.each_value.sum(&:size)

    # @return [Integer] how often a message was consumed that had been before
    def repeats = look && (@lines - count)

    # Reads what has been added.
    # @return [self]
    def look
      @rest = "#{@rest}#{@file.read}"
      whole, newline, @rest = @rest.rpartition("\n")
      "#{whole}#{newline}".each_line { |line| take(*line.split) }
      self
    end

    def close = @file.close

    private

    def take(partition, number, pid, member = nil)
      @firsts[partition.to_i][number.to_i] = true
      @members[pid.to_i] = member
      @lines += 1
    end
  end
end
