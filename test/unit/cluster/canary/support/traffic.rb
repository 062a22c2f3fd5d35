# frozen_string_literal: true

require "pando/cluster/monitor"

module CanarySupport
  Comparison = Pando::Cluster::Canary::Comparison
  Curve = Pando::Cluster::Canary::Curve

  # Stands in for a row of the scoreboard.
  Row = Struct.new(:requests, :failures, :first_jobs, :faults)

  # The durations of requests to a made-up application. Each kind has its share, its median in microseconds, and the
  # factor within which two thirds of the durations lie. The first request of a new worker takes `cold` times as long,
  # and each later one less.
  class Traffic
    def initialize(seed, mix, cold: 1.0)
      @random = Random.new(seed)
      @mix = mix
      @cold = cold
    end

    # @return [Array<Integer>] durations of one worker's first requests
    def codes(count, factor = 1.0)
      Array.new(count) { |age| Traffic.code(request * factor * (1 + ((@cold - 1) / (age + 1)))) }
    end

    def of(workers)
      workers.inject(Curve.new) do |curve, codes|
        text = codes.pack("C*")
        curve.add(Row.new(codes.size, 0, [text, text], []))
      end
    end

    def curve(count, factor = 1.0, one_band: false)
      one_band ? of(codes(count, factor).map { |code| [code] }) : of([codes(count, factor)])
    end

    def workers(count, requests) = of(Array.new(count) { codes(requests) })

    # The same as pando_duration_code.
    def self.code(microseconds)
      octave, rest = Math.log2([microseconds, 1].max).divmod(1)
      [(octave * 8) + ((2**rest) - 1).*(8).floor + 1, 255].min
    end

    private

    def request
      chance = @random.rand
      _, median, spread = @mix.find { |share, *| (chance -= share) <= 0 } || @mix.last
      median * (spread**normal)
    end

    # The Box-Muller transform.
    def normal = Math.sqrt(-2 * Math.log(1 - @random.rand)) * Math.cos(2 * Math::PI * @random.rand)
  end
end
