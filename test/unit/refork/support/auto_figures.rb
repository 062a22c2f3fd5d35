# frozen_string_literal: true

require "pando/refork"
require "support/upgrade_record"

module ReforkSupport
  # Figures for `refork :auto`, and what it makes of them.
  module AutoFigures
    MIB = 1024.0**2
    Conditions = Struct.new(:obstacle, :quiet?)
    UNDISTURBED = Conditions.new(nil, true).freeze
    BUSY = Conditions.new(nil, false).freeze

    def setup
      @rules = Pando::Refork::Auto::Rules.for
      @rules.floor = 0.0
      @rules.most = 0.0
      @generation = 0
      @reforks = 0
    end

    def auto = @auto ||= Pando::Refork::Auto.new(@rules)

    # What it says to a worker's age and the memory of all, in MiB. A worker serves ten requests a second. A request
    # takes ten milliseconds, and the first ones another half of a second of all together.
    def look(age, size = 100.0, on: UNDISTURBED, seconds: age / 10.0, workers: 4, cpu: 0.125 + (age / 100.0), most: age,
             warmed: nil, mold_cpu: nil)
      vitals = Pando::Refork::Vitals.new(generation: @generation, reforks: @reforks, seconds: seconds,
                                         workers: workers, age: age.to_f, most: most, warmed: warmed,
                                         cpu: cpu, mold_cpu: mold_cpu, pss: size && (size * MIB),
                                         private: @private, obstacle: @obstacle)
      auto.decide(vitals, on)
    end

    def act(...) = look(...).action

    def refork
      @generation += 1
      @reforks += 1
    end

    # A new monitor takes up what the old one knows.
    def upgrade
      @auto = Pando::Refork::Auto.new(@rules).take_up(Support::UpgradeRecord.of(auto))
    end

    # The app is warm: its ancestor has served more than 3,200 requests.
    def settle
      [0, 50, 200, 4000].each { |age| look(age) }
      refork
      assert_equal :settle, act(0)
    end

    # The first request after which it reforks, of a generation whose memory grows as told.
    def due(ages)
      ages.find { |age| act(age, yield(age)) == :refork }
    end
  end
end
