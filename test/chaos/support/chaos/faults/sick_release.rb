# frozen_string_literal: true

require "fileutils"

module Chaos
  module Faults
    # A release that boots and becomes ready, but harms each request. Its canary must detect that and stop the rollout.
    class SickRelease < Fault
      named "sick release", weight: 6, evidence: /\Acanary\.failed\z/

      KINDS = %w[raises crashes burns leaks].freeze
      PATIENCE = 20 # seconds until the outcome of a release is known
      TRIES = 5
      # Requests after which a canary cannot be mistaken for a healthy one.
      ENOUGH = 20
      # Defects that are measured from outside or by comparison: another fault at the same time may hide them.
      SUBTLE = %w[burns leaks].freeze

      # Every mold with the defect writes its generation to this file.
      MARK = <<~RUBY
        before_fork do |server|
          name = { "jobs" => "sick nodes", "apart" => "sick apart" }.fetch(server.role.context.pool, "sick")
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

      # @return [Integer, nil] generation with the defect; nil: it did not boot because of another fault
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

      # Another fault has hidden the defect: for example, the canary got no requests.
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
