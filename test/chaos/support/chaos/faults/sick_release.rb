# frozen_string_literal: true

require "fileutils"

module Chaos
  module Faults
    # A release that boots and comes up, and harms each request: its canary shows it, and it is not rolled out.
    class SickRelease < Fault
      named "sick release", weight: 6, evidence: /\Acanary\.failed\z/

      KINDS = %w[raises crashes burns leaks].freeze
      PATIENCE = 20 # seconds until it is known what became of a release
      TRIES = 5
      # Requests after which no canary can be taken for a healthy one.
      ENOUGH = 20
      # What is measured from outside, or against others: something else that is wrong at that time may hide it.
      SUBTLE = %w[burns leaks].freeze

      # Whichever mold has it tells its number.
      MARK = <<~RUBY
        before_fork do |server|
          name = server.role.context.pool == "jobs" ? "sick nodes" : "sick"
          File.write(File.join(folder, name), server.role.generation.to_s)
        end
      RUBY

      def self.plan(random) = { "how" => KINDS.sample(random: random) }

      def failures = plan["how"] == "raises" ? [500] : []

      def inject
        @began = Chaos.now
        FileUtils.rm_f(mark)
        stage.spoil { |rackup, config| poisoned(rackup, "#{config}\n#{MARK}") }
        stage.signal("HUP")
        number = scene.wait(PATIENCE) { decided }
      ensure
        stage.restore
        judge(number || generation)
      end

      private

      def mark = stage.path("sick")
      def poisoned(rackup, config) = [%(require "poison"\nuse Poison, "#{plan["how"]}"\n#{rackup}), config]

      # @return [Integer, nil] of those that have it; nil: it has not booted, for something else went wrong as well
      def generation
        text = File.read(mark)
        Integer(text, 10) unless text.empty?
      rescue Errno::ENOENT
        nil
      end

      def decided
        generation if generation && (failed?(generation) || scene.chronicle.told("reload.finished", generation))
      end

      def failed?(number) = scene.chronicle.told("reload.failed", number)

      def passed(number) = scene.chronicle.told("canary.passed", number)

      def judge(number)
        return if number.nil? || failed?(number)

        passed = passed(number)
        scene.chronicle.violate("a release that #{plan["how"]} has passed its canary: #{passed}") if noticeable?(passed)
        replace(number)
      end

      # @param passed [Hash, nil] the event
      def noticeable?(passed)
        return false if passed.nil? || passed["requests"].to_i < ENOUGH

        !SUBTLE.include?(plan["how"]) || scene.chronicle.spells(@began, Chaos.now, Ledger::SLACK).one?
      end

      # Something else hid that it is sick: nobody asked its canary anything, for instance.
      def replace(number)
        TRIES.times do
          stage.signal("HUP")
          return if scene.wait(PATIENCE) { scene.chronicle.latest("reload.finished") > number }
        end
        raise "the release that #{plan["how"]} is not replaced"
      end
    end
  end
end
