# frozen_string_literal: true

require "pando/cluster/canary/duration"
require "pando/cluster/canary/exact_test"
require "pando/counted"

module Pando
  module Cluster
    module Canary
      # A new generation beside the one before: what of it is worse, and not by chance. Each measure is compared with
      # the old workers at the same age, and, as far as they have served meanwhile, with what they do now: what slows
      # down or fails for everybody is nobody's fault.
      #
      # @api private
      class Comparison
        include Counted

        # How many times as long, and microseconds more, a request must take to be worse: less is not felt, and may be
        # caches, the clock of the CPU or the scheduler.
        CPU = [1.5, 200.0].freeze
        TIME = [2.0, 1000.0].freeze
        # Without a present: a machine that has more to do than then shows in CPU time a little, in time at once.
        CPU_ALONE = [3.0, 1000.0].freeze
        # What may be by chance in the comparison with the present.
        NOW = 0.01
        # Requests that make a present to compare with.
        ENOUGH = 5

        # @param curve [Curve] of the new generation
        # @param before [Curve] of the old one
        # @param beside [Curve, nil] what the old workers have done meanwhile, whatever their age
        # @param waited [Float] microseconds a request that the new ones have waited for a CPU: of the time that a
        #   request takes, so much more is not theirs
        def initialize(curve, before, beside = nil, waited: 0.0)
          @time = [TIME.first, TIME.last + waited]
          @curve = curve
          @before = before
          @beside = beside if beside && beside.requests >= ENOUGH
        end

        # @param chance [Float] how often a good generation may be taken for a bad one, for each measure
        # @param now [Float] likewise, in the comparison with the present
        # @return [String, nil] what is worse
        def complaint(chance, now = NOW)
          failing(chance, now) || slower("CPU time", :cpu, @beside ? CPU : CPU_ALONE, chance, now) ||
            (slower("time", :time, @time, chance, now) if @beside)
        end

        # However few there were: not one has succeeded, and for the old workers most do.
        # @return [String, nil]
        def hopeless
          return if @curve.requests.zero? || @curve.failures < @curve.requests
          return if [@before, @beside].compact.any? { |other| other.requests.positive? && mostly_fails?(other) }

          "#{failures(@curve)} failed"
        end

        # @return [String, nil]
        def crashing(chance)
          return if @curve.crashes < 2
          return unless ExactTest.p(@curve.crashes, [@curve.requests, @curve.crashes].max,
                                    @before.crashes, [@before.requests, @before.crashes].max) < chance

          "#{@curve.crashes} workers ended as nobody wanted in #{counted(@curve.requests, "request")}"
        end

        private

        def mostly_fails?(other) = other.failures * 2 >= other.requests
        def failures(curve) = "#{curve.failures} of #{counted(curve.requests, "request")}"

        def failing(chance, now)
          return unless more_failures?(@before, chance) && (@beside.nil? || more_failures?(@beside, now))

          "#{failures(@curve)} failed, of those before #{failures(@before)}"
        end

        def more_failures?(other, chance)
          @curve.failures.positive? &&
            ExactTest.p(@curve.failures, @curve.requests, other.failures, other.requests) < chance
        end

        def slower(name, measure, limits, chance, now)
          then_ = Duration.new(@curve.public_send(measure), @before.public_send(measure))
          return unless then_.worse?(*limits, chance) && slower_now?(measure, limits, now)

          "a request takes #{then_.ratio.round(1)} times the #{name} that it took before at the same age " \
            "(#{counted(@curve.requests, "request")})"
        end

        def slower_now?(measure, limits, now)
          return true unless @beside

          Duration.new([all(@curve, measure)], [all(@beside, measure)]).worse?(*limits, now)
        end

        def all(curve, measure)
          curve.public_send(measure).each_with_object(Hash.new(0)) do |band, sum|
            sum.merge!(band) { |_, one, two| one + two }
          end
        end
      end
    end
  end
end
