# frozen_string_literal: true

require "chaos/fault"
require "json"

module Chaos
  # Which faults happen when. The seed alone determines it: the machine's abilities decide only whether they happen.
  class Schedule
    # A fault, and when it starts, in seconds after its round.
    Item = Struct.new(:at, :kind, :plan) do
      def to_h = { "at" => at, "fault" => kind.label, **plan }
    end
    # Some overlapping faults, and the quiet time before them.
    Round = Struct.new(:number, :pause, :items) do
      def to_h = { "round" => number, "pause" => pause, "faults" => items.map(&:to_h) }
    end

    # @param only [Array<String>, nil] kinds, by name
    # @param file [IO] each round is written to it before it begins
    # @param pools [Array<String>] include faults of these pools, see Fault.kinds
    def initialize(seed, only, file, pools: [])
      @seed = seed
      @file = file
      @kinds = Fault.choose(only, pools)
    end

    # @return [Round] each with its own random numbers
    def round(number)
      random = Random.new((@seed * 1_000_003) + number)
      items = sample([1, 1, 2, 3].sample(random: random), random).map do |kind|
        Item.new((random.rand * 2).round(3), kind, kind.plan(random))
      end
      Round.new(number, (random.rand * 1.5).round(3), items.sort_by(&:at)).tap { |round| write(round) }
    end

    private

    # Chooses no kind twice.
    def sample(count, random)
      weighed = @kinds.map { |kind| [kind, -random.rand**(1.0 / kind.weight)] }
      weighed.min_by(count, &:last).map(&:first)
    end

    def write(round)
      @file.puts(JSON.generate(round.to_h))
      @file.flush
    end
  end
end
