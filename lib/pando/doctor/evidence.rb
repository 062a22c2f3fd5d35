# frozen_string_literal: true

require "pando/doctor/subject/wire"

module Pando
  module Doctor
    # All that an examination has seen; the checks judge it. What the processes told is in
    # {#facts}, what was seen from outside in {#generations}.
    class Evidence
      # A generation under examination: its mold and workers and how they looked once they had
      # served, the sockets before they did, and what each worker (by slot) used of the descriptors it inherited.
      Generation = Struct.new(:number, :mold, :workers, :network, :censuses, :uses, :shared, keyword_init: true)
      # A request and what became of it.
      Sent = Struct.new(:request, :generation, :slot, :answer, keyword_init: true)
      # A process's memory in bytes.
      Memory = Struct.new(:moment, :title, :pid, :rss, :pss, :uss, :huge, :merged, :gain, keyword_init: true)
      # A check that could not be done, and why.
      Undone = Struct.new(:check, :reason)
      # A check that was done with a part of the requests only.
      Limited = Struct.new(:check, :requests, :of)

      attr_reader :generations, :sent, :counts, :memory, :lazy
      # @return [Array<Undone>]
      attr_reader :undone
      # @return [Array<Limited>]
      attr_reader :limits
      # @return [Array<Hash>] see Subject
      attr_accessor :facts
      # @return [Array<Hash>] the lines behind native things, of the second look
      attr_accessor :origins
      # @return [Integer, nil] the generation that did not come
      attr_accessor :missing
      # @return [Float, nil] how long one worker took for all requests once
      attr_accessor :round_seconds

      # @param directory [String] of the application
      def initialize(directory)
        @directory = Subject::Wire.clean(directory) # as the locations are told
        @generations = []
        @sent = []
        @counts = []
        @memory = []
        @lazy = []
        @facts = []
        @origins = []
        @undone = []
        @limits = []
      end

      # Notes that a check could not be done: the examination is incomplete.
      # @param check [String] its name, for a human @param reason [String]
      def could_not(check, reason) = @undone |= [Undone.new(check, reason)]

      # Notes that a check saw some of the requests only.
      def limited(check, requests, all) = @limits << Limited.new(check, requests, all)

      # @return [Array<Hash>] snapshots of one moment, of a generation, of a role
      def snapshots(moment, generation: nil, role: nil)
        facts.select do |fact|
          fact[:snapshot] == moment.to_s && (generation.nil? || fact[:generation] == generation) &&
            (role.nil? || fact[:role] == role.to_s)
        end
      end

      # @return [Array<Hash>] events of these names
      def events(*names) = facts.select { |fact| names.include?(fact[:event]) }

      # @return [Array<Hash>] of each section what was told last
      def last_sections
        facts.select { |fact| fact.key?(:section) }.group_by { |fact| fact[:section] }.map { |_, told| told.last }
      end

      # @return [Array<Hash>]
      def records(kind) = facts.select { |fact| fact[:record] == kind.to_s }

      # What forked whom: a forker's last words before, and its children's once they had served.
      # @yieldparam forker [Hash] @yieldparam child [Hash] snapshots
      def each_fork
        snapshots(:fork).each do |forker|
          children = snapshots(:served).select { |one| one[:ancestors][0..-2].include?(forker[:pid]) }
          children.each { |child| yield forker, child }
        end
      end

      # @return [Array<Hash>] snapshots of those that have a child which has served
      def forkers = [].tap { |found| each_fork { |forker, _| found << forker } }.uniq

      # @return [String, nil] the line behind what C code made
      def origin(kind)
        origins.find { |one| one[:origin] == kind.to_s && yield(one) }&.fetch(:location)
      end

      # @return [Boolean] whether it is the application's own, not a library's
      def own?(location)
        return false if location.nil?

        path = File.expand_path(location, @directory)
        path.start_with?("#{@directory}/") && !path.start_with?("#{@directory}/vendor/") &&
          Gem.path.none? { |folder| path.start_with?("#{folder}/") }
      end

      # @return [String, nil] a location below the application's folder as it is there
      def local(location) = location&.delete_prefix("#{@directory}/")

      PANDO = File.expand_path("../..", __dir__)

      # @return [Boolean] whether the server itself made it
      def ours?(location) = !location.nil? && location.start_with?("#{PANDO}/")
    end
  end
end
