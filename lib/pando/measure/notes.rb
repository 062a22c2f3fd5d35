# frozen_string_literal: true

require "pando/counted"
require "pando/measure/figures"

module Pando
  module Measure
    # What a reader of the figures must know to believe them.
    #
    # @api private
    class Notes
      include Counted

      # @param config [Config] @param plan [Plan] @param rehearsal [Rehearsal] @param contest [Contest]
      def initialize(config, plan, rehearsal, contest)
        @config = config
        @plan = plan
        @rehearsal = rehearsal
        @contest = contest
      end

      # @return [Array<String>]
      def to_a
        [@rehearsal.broken, cut_short, alone, development, allocators, *left_out, hurry, tls, redirected, *errors, few,
         short, idle].compact
      end

      private

      def sides = @sides ||= @contest.records.map { |record| [record.subject.name, record.subject.facts, record] }
      def facts(name) = sides.find { |known, _| known == name }&.at(1)

      def cut_short
        "It ended early: #{@contest.cut_short}." if @contest.cut_short
      end

      def alone
        return if facts("Puma") || @plan.against == :none

        "Puma is not in the bundle, so Pando is measured alone: `bundle add puma` lets the two be compared."
      end

      def development
        return unless %w[development test].include?(@config.environment)

        "In the environment #{@config.environment} Pando does not refork, and an application may reload its code: " \
          "-e production measures what counts."
      end

      def allocators
        used = sides.to_h { |name, facts, _| [name, facts[:allocator]] }
        return if used.values.uniq.size < 2

        told = used.map { |name, library| "#{name} ran on #{library || "the C library's malloc"}" }
        "#{told.join(", ")}, as they come. With LD_PRELOAD=PATH of libjemalloc.so.2 before the command both run on it."
      end

      def left_out
        sides.filter_map do |name, facts, _|
          "#{name} ran without #{facts[:left_out].join(", ")}." if facts[:left_out].any?
        end
      end

      def hurry
        scale = facts("Pando")[:scale]
        return if scale.nil? || scale == "1"

        "A second of this load stands for #{scale} of production, by which Pando goes when it weighs memory against " \
          "CPU time and proves a new generation. PANDO_TIME_SCALE=1 before the command leaves it as it is."
      end

      def tls
        "Each request says X-Forwarded-Proto: https, since the application redirects others." if @rehearsal.tls?
      end

      def redirected
        number = @rehearsal.redirected
        return if number.zero?

        "Of #{counted(kinds, "kind")} of requests #{number} #{number == 1 ? "is" : "are"} redirected, perhaps to a " \
          "login: --header \"Cookie: ...\" sends what your browser sends."
      end

      def errors
        sides.filter_map do |name, _, record|
          troubles = record.answers.map(&:trouble).compact.tally
          told = troubles.map { |words, times| "#{words} (#{counted(times, "time")})" }
          "#{name} failed to answer under load: #{told.join(", ")}." if troubles.any?
        end
      end

      def kinds = @rehearsal.selection.different.size

      def few
        return if kinds >= 20

        "Requests of #{counted(kinds, "kind")} show little of an application: --log FILE replays a log of production."
      end

      # What grows in an hour is not seen in seconds.
      def short
        return if @plan.requests >= 500

        "Each worker got #{counted(@plan.requests, "request")}, which is little: memory grows for thousands " \
          "(--requests N)."
      end

      def idle
        return if sides.all? { |_, _, record| record.cpu >= Figures::LEAST_CPU }

        told = sides.map { |name, _, record| "#{format("%.2f", record.cpu)} s on #{name}" }
        "The load took CPU time of only #{told.join(" and ")}: too little to go by, since the " \
          "system counts it in ticks of 10 ms. More --requests tell it."
      end
    end
  end
end
