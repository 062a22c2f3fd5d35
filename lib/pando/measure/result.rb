# frozen_string_literal: true

require "etc"
require "pando/measure/figures"
require "pando/measure/notes"
require "pando/measure/report"
require "pando/version"
require "pando/yjit"

module Pando
  module Measure
    # The result of a measurement.
    #
    # @api private
    class Result
      SCHEMA = 1

      # @return [Array<Side>] the other server first, Pando last
      attr_reader :sides
      # @return [Plan]
      attr_reader :plan
      # @return [Selection]
      attr_reader :selection
      # @return [String, nil] how the application is broken, so that the figures mean nothing; nil: it is not
      attr_reader :broken
      # @return [Array<String>] what a reader of the figures must know
      attr_reader :notes

      # @param config [Config] @param plan [Plan] @param rehearsal [Rehearsal] @param contest [Contest]
      def initialize(config, plan, rehearsal, contest)
        @config = config
        @plan = plan
        @selection = rehearsal.selection
        @broken = rehearsal.broken
        @sides = contest.sides
        @notes = Notes.new(config, plan, rehearsal, contest).to_a
      end

      # @return [Side, nil]
      def other = (sides.first if sides.size > 1)
      # @return [String]
      def application = File.basename(@config.directory)
      # @return [String]
      def environment = @config.environment
      # @return [String]
      def ruby = "ruby #{RUBY_VERSION}#{" with YJIT" if YJIT.enabled?}"

      # @yieldparam side [Side]
      # @return [Float, nil] Pando's as a multiple of the other's
      def ratio = (Figures.ratio(yield(sides.last), yield(other)) if other)

      def to_h
        { schema: SCHEMA, pando: VERSION, application: application, environment: environment, ruby: RUBY_DESCRIPTION,
          cpus: Etc.nprocessors, **plan.to_h.slice(:workers, :requests, :clients), asked: asked,
          left_out: selection.left_out, notes: notes, servers: sides.to_h { |side| [side.name.downcase, side.to_h] },
          ratio: { memory: ratio(&:average), final: ratio(&:final), cpu: ratio(&:telling_cpu) } }
      end

      private

      def asked
        { origin: selection.origin, requests: selection.requests.size, kinds: selection.different.size }
      end
    end
  end
end
