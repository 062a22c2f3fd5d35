# frozen_string_literal: true

module Support
  # The record of the consumers in test/fixtures/swarm/karafka: a line for each message, in the order of time.
  class KafkaEffects
    # @return [String]
    attr_reader :path
    # @return [Hash{Integer => String}] name as a static member by process
    attr_reader :members

    def initialize(folder)
      @path = File.join(folder, "effects")
      File.write(@path, "")
      @file = File.open(@path)
      @firsts = Hash.new { |hash, partition| hash[partition] = {} }
      @members = {}
      @lines = 0
    end

    # Kafka guarantees the order within a partition, and delivery at least once: a repeated message has come before.
    #
    # @return [Hash{Integer => Array<Integer>}] by partition, its messages in the order in which they first came
    def firsts = look && @firsts.transform_values(&:keys)

    # @return [Integer] messages that were consumed at least once
    def count = look && @firsts.each_value.sum(&:size)

    # @return [Integer] number of repeated consumptions
    def repeats = look && (@lines - count)

    # Reads the lines that were added.
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
