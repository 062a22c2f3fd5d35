# frozen_string_literal: true

require "etc"
require "pando/measure/figures"
require "pando/measure/report"
require "pando/version"
require "pando/wording"

module Pando
  module Measure
    # The result of a measurement: the figures, and notes that their reader must know.
    class Result
      include Wording

      SCHEMA = 1

      # @return [Array<Side>] the other server first, Pando last
      attr_reader :sides
      attr_reader :plan

      def initialize(config, plan, rehearsal, contest)
        @config = config
        @plan = plan
        @rehearsal = rehearsal
        @contest = contest
        @sides = contest.sides
      end

      def other = (sides.first if sides.size > 1)
      def application = File.basename(@config.directory)
      def environment = @config.environment
      def ruby = "ruby #{RUBY_VERSION}"
      def selection = @rehearsal.selection
      # @return [String, nil] how the application is broken, so that the figures mean nothing; nil: it is not
      def broken = @rehearsal.broken

      # @return [Float, nil] Pando's as a multiple of the other's
      def ratio = (Figures.ratio(yield(sides.last), yield(other)) if other)

      def to_h
        { schema: SCHEMA, pando: VERSION, application: application, environment: environment, ruby: RUBY_DESCRIPTION,
          cpus: Etc.nprocessors, **plan.to_h.slice(:workers, :requests, :clients),
          asked: { origin: selection.origin, requests: selection.requests.size, kinds: kinds },
          left_out: selection.left_out, notes: notes, servers: sides.to_h { |side| [side.name.downcase, side.to_h] },
          ratio: { memory: ratio(&:average), final: ratio(&:final), cpu: ratio(&:telling_cpu) } }
      end

      def notes
        [broken, cut_short, alone, development, allocators, jits, *left_out, hurry, tls, redirected, *errors, few,
         short, idle].compact
      end

      private

      def kinds = selection.different.size

      # @return [String, nil] how each server ran; nil: all ran the same way
      def difference(fact)
        used = sides.to_h { |side| [side.name, side.facts[fact]] }
        used.map { |name, value| "#{name} ran #{yield(value)}" }.join(", ") if used.values.uniq.size > 1
      end

      # Each of the following methods is a note, or nil or empty if there is nothing to say.

      def cut_short
        "The measurement ended early: #{@contest.cut_short}." if @contest.cut_short
      end

      def alone
        return if other || plan.against == :none

        "Puma is not in the bundle, so Pando is measured alone. To compare the two, run `bundle add puma`."
      end

      def development
        return unless %w[development test].include?(@config.environment)

        "In the #{@config.environment} environment Pando does not refork, and an application may reload its code. " \
          "Use -e production for figures that count."
      end

      def allocators
        told = difference(:allocator) { |library| "on #{library || "the C library's malloc"}" }
        return unless told

        "#{told}, by default. To run both on jemalloc, put LD_PRELOAD=/path/to/libjemalloc.so.2 before the command."
      end

      # An application, or a config file, may enable it.
      def jits
        told = difference(:jit) { |jit| jit ? "with #{jit}" : "without a JIT" }
        told && "#{told}. To run both with YJIT, put RUBY_YJIT_ENABLE=1 before the command."
      end

      def left_out
        sides.filter_map do |side|
          "#{side.name} ran without #{side.facts[:left_out].join(", ")}." if side.facts[:left_out].any?
        end
      end

      def hurry
        scale = sides.last.facts[:scale]
        return if scale.nil? || scale == "1"

        "For Pando, a second of this load stands for #{scale} of production when it weighs memory against CPU " \
          "time and proves a new generation. To turn that off, put PANDO_TIME_SCALE=1 before the command."
      end

      def tls
        return unless @rehearsal.tls?

        "Each request has the header X-Forwarded-Proto: https, since the application redirects plain HTTP."
      end

      def redirected
        number = @rehearsal.redirected
        return if number.zero?

        "The application redirects #{number} of #{counted(kinds, "kind")} of requests, perhaps to a login. To send " \
          "your browser's session, use --header \"Cookie: ...\"."
      end

      def errors
        sides.filter_map do |side|
          told = side.errors.map { |words, times| "#{words} (#{counted(times, "time")})" }
          "#{side.name} failed some requests under load: #{told.join(", ")}." if told.any?
        end
      end

      def few
        return if kinds >= 20

        "Requests of #{counted(kinds, "kind")} show little of an application. To replay a production log, use " \
          "--log FILE."
      end

      # Memory that grows for an hour does not show in seconds.
      def short
        return if plan.requests >= 500

        "Each worker got only #{counted(plan.requests, "request")}. Memory grows for thousands of requests: use " \
          "--requests N."
      end

      def idle
        return if sides.all?(&:telling_cpu)

        told = sides.map { |side| "#{format("%.2f", side.cpu)} s on #{side.name}" }
        "The load took too little CPU time to compare (#{told.join(", ")}), since the system counts it in ticks of " \
          "10 ms. Use more --requests."
      end
    end
  end
end
