# frozen_string_literal: true

require "pando/doctor/subject/wire"

module Pando
  module Doctor
    # All that an examination has seen: the processes' own reports are in {#facts}, what was seen from outside is in
    # {#generations}. Owned by the examination, in the command's process; the checks read it.
    class Evidence
      # One generation: its mold and workers (Stage::Actor), the SocketTable before the workers served, the ProcessInfo
      # of each actor after they had, by slot which inherited descriptors a worker used, and the shared descriptors.
      Generation = Struct.new(:number, :mold, :workers, :sockets, :processes, :uses, :shared, keyword_init: true)
      # A request that was sent to a worker, and its Conversation::Answer.
      Sent = Struct.new(:request, :generation, :slot, :answer, keyword_init: true)
      # A process's memory in bytes.
      Memory = Struct.new(:moment, :title, :pid, :rss, :pss, :uss, keyword_init: true)
      # A check that could not be made, and why.
      Undone = Struct.new(:check, :reason)
      # A check that was made with some of the requests only.
      Limited = Struct.new(:check, :requests, :of)

      attr_reader :generations, :sent, :counts, :memory, :undone, :limits
      # @return [Array<Hash>] the processes' reports, in the order of their arrival
      attr_accessor :facts
      # @return [Array<Hash>] lines that made native threads and descriptors, from the second, traced run
      attr_accessor :origins
      # @return [Integer, nil] the number of the generation that did not come
      attr_accessor :missing
      # @return [Float, nil] seconds that one worker took for all requests once
      attr_accessor :round_seconds
      # @return [Hash, nil] a worker's report about lazy state
      attr_accessor :lazy_state

      def initialize(directory)
        @directory = Subject::Wire.clean(directory) # locations are reported cleaned too
        @generations = []
        @sent = []
        @counts = []
        @memory = []
        @facts = []
        @origins = []
        @undone = []
        @limits = []
      end

      # Notes that a check could not be made: the examination is incomplete.
      def could_not(check, reason) = @undone |= [Undone.new(check, reason)]

      # Notes that a check saw some of the requests only.
      def limited(check, requests, all) = @limits << Limited.new(check, requests, all)

      # @param moment [Symbol] :fork, :served
      def snapshots(moment) = facts.select { |fact| fact[:snapshot] == moment.to_s }
      def events(*names) = facts.select { |fact| names.include?(fact[:event]) }
      def records(kind) = facts.select { |fact| fact[:record] == kind.to_s }

      # @return [Hash, nil] the last mold's report about libraries, which includes those that requests have loaded
      def libraries = facts.reverse_each.find { |fact| fact[:section] == "libraries" }

      # @yieldparam forker [Hash] its snapshot before the fork
      # @yieldparam child [Hash] the snapshot of one of its descendants after that had served
      def each_fork
        snapshots(:fork).each do |forker|
          children = snapshots(:served).select { |one| one[:ancestors][0..-2].include?(forker[:pid]) }
          children.each { |child| yield forker, child }
        end
      end

      # @return [Array<Hash>] snapshots of the processes that have a child which has served
      def forkers = [].tap { |found| each_fork { |forker, _| found << forker } }.uniq

      # @return [String, nil] the line that made a native thread or descriptor
      def origin(kind)
        origins.find { |one| one[:origin] == kind.to_s && yield(one) }&.fetch(:location)
      end

      # @return [Boolean] whether the line is the application's own, not a library's
      def own?(location)
        return false if location.nil?

        path = File.expand_path(location, @directory)
        path.start_with?("#{@directory}/") && !path.start_with?("#{@directory}/vendor/") &&
          Gem.path.none? { |folder| path.start_with?("#{folder}/") }
      end

      # @return [String, nil] relative to the application's folder, if it is below it
      def local(location) = location&.delete_prefix("#{@directory}/")

      PANDO = File.expand_path("../..", __dir__)

      def ours?(location) = !location.nil? && location.start_with?("#{PANDO}/")
    end
  end
end
