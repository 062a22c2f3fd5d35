# frozen_string_literal: true

module Bench
  module Lab
    # Requests in a fixed order. The targets follow Zipf's law: the n-th most popular is requested 1/n times as often as
    # the first. The seed alone determines the popularity of the targets and the rows that they ask for. So every server
    # gets the same requests in the same order.
    class Traffic
      EXPONENT = 1.0
      ROWS = 60

      # @!attribute verb [String]
      # @!attribute path [String] %d is the number of a row
      # @!attribute headers [Hash{String => String}] in addition to those of each request
      # @!attribute body [String, nil]
      Target = Struct.new(:verb, :path, :headers, :body) do
        def initialize(verb, path, headers = {}, body = nil) = super(verb, path, headers || {}, body)
      end

      attr_reader :targets

      # @param targets [Array<Array>] arguments of each {Target}: verb and path, optionally headers and a body
      # @param writes [Array<Array>] the same, for requests that write
      # @param share [Float] of writes among all requests
      def initialize(targets, writes: [], share: 0.0, seed: 1)
        @random = Random.new(seed)
        @share = share
        @reads = ranked(targets, 0)
        @writes = ranked(writes, targets.size)
        @targets = (targets + writes).map { |target| Target.new(*target) }
      end

      # @return [Array(Integer, String)] index of the target in {#targets}, and its path
      def next
        ranks = @random.rand < @share ? @writes : @reads
        index = ranks.last[draw(ranks.first)]
        [index, @targets[index].path.sub("%d") { (1 + @random.rand(ROWS)).to_s }]
      end

      private

      # @return [Array(Array<Float>, Array<Integer>)] cumulated weights, and the targets by popularity
      def ranked(targets, first)
        sum = 0.0
        sums = targets.each_index.map { |rank| sum += 1.0 / ((rank + 1)**EXPONENT) }
        [sums, (first...(first + targets.size)).to_a.shuffle(random: @random)]
      end

      def draw(sums)
        point = @random.rand * sums.last
        sums.bsearch_index { |sum| sum > point } || (sums.size - 1)
      end
    end
  end
end
