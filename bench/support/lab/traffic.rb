# frozen_string_literal: true

module Bench
  module Lab
    # Requests in a fixed order: which target comes next follows Zipf's law (the n-th most popular is asked for 1/n
    # times as often as the first); which target is how popular, and which row it asks for, follow from the seed alone.
    # So every server gets the same requests in the same order.
    class Traffic
      EXPONENT = 1.0
      ROWS = 60

      # @!attribute verb [String]
      # @!attribute path [String] %d is the number of a row
      # @!attribute headers [Hash{String => String}] besides what each request has
      # @!attribute body [String, nil]
      Target = Struct.new(:verb, :path, :headers, :body) do
        def initialize(verb, path, headers = {}, body = nil) = super(verb, path, headers || {}, body)
      end

      attr_reader :targets

      # @param targets [Array<Array>] what each {Target} is made of: verb and path, perhaps headers and a body
      # @param writes [Array<Array>] the same
      # @param share [Float] of the writes among all requests
      def initialize(targets, writes: [], share: 0.0, seed: 1)
        @random = Random.new(seed)
        @share = share
        @reads = ranked(targets, 0)
        @writes = ranked(writes, targets.size)
        @targets = (targets + writes).map { |target| Target.new(*target) }
      end

      # @return [Array(Integer, String)] place of the target in {#targets}, and its path
      def next
        ranks = @random.rand < @share ? @writes : @reads
        index = ranks.last[draw(ranks.first)]
        [index, @targets[index].path.sub("%d") { (1 + @random.rand(ROWS)).to_s }]
      end

      private

      # @return [Array(Array<Float>, Array<Integer>)] sums of the weights, and the targets in the order of popularity
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
