# frozen_string_literal: true

require "forwardable"
require "pando/doctor/app_folder"
require "pando/doctor/responses"
require "pando/wording"

module Pando
  module Doctor
    # All that an examination has seen: the processes' own reports are in {#facts}, what was seen from outside is in
    # {#generations}. Owned by the examination, in the command's process; the checks read it.
    class Evidence
      extend Forwardable

      # One generation: its mold and workers (Stage::Actor), the SocketTable before the workers served, the ProcessInfo
      # of each actor after they had, by slot which inherited descriptors a worker used, and the shared descriptors.
      Generation = Struct.new(:number, :mold, :workers, :sockets, :processes, :uses, :shared, keyword_init: true)
      # A request that was sent to a worker, and its Conversation::Answer.
      Sent = Struct.new(:request, :generation, :slot, :answer, keyword_init: true) do
        def sent_to_tls? = Responses::REDIRECTED.include?(answer.status) && request.sent_to_tls?(answer.location)
      end
      # A process's memory in bytes.
      Memory = Struct.new(:moment, :title, :pid, :rss, :pss, :uss, keyword_init: true)
      # A check that could not be made, and why.
      Undone = Struct.new(:check, :reason)
      # A check that was made with some of the requests only.
      Limited = Struct.new(:check, :requests, :of) do
        include Wording

        def to_s
          "#{check} was measured with #{requests} of #{counted(of, "request")}, because it takes long. Of a shorter " \
            "list (--requests) it uses each answered request, once for each path."
        end
      end
      # A list of requests, of so many lines; `unread` are the numbers of those that hold none.
      Unread = Struct.new(:check, :lines, :unread) do
        include Wording

        def to_s
          outcome = unread.one? ? "is not a request: line" : "are not requests: lines"
          more = unread.size - SHOWN
          "#{unread.size} of #{counted(lines, "line")} #{outcome} #{unread.first(SHOWN).join(", ")}" \
            "#{" and #{more} more" if more.positive?}"
        end
      end
      SHOWN = 5
      # The default request, which nobody has chosen, and which the application does not know.
      NoRoot = Struct.new(:check, :requests, :of) do
        def to_s
          "the application answers GET / with 404, so that little of its code has run. Choose requests: `--requests " \
            "routes` for the routes of a Rails application, or `--requests FILE`."
        end
      end

      attr_reader :generations, :counts, :memory, :undone, :limits
      # @return [Array<Sent>]
      attr_accessor :sent
      # @return [Integer] requests that are sent as by a TLS proxy
      attr_accessor :over_tls
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

      # @!method own?(location) @!method local(location)
      # @see AppFolder
      def_delegators :@folder, :own?, :local

      def initialize(directory)
        @folder = AppFolder.new(directory)
        @generations = []
        @sent = []
        @over_tls = 0
        @counts = []
        @memory = []
        @facts = []
        @origins = []
        @undone = []
        @limits = []
      end

      # @return [Responses]
      def responses = Responses.new(sent, over_tls)

      # Notes that a check could not be made: the examination is incomplete.
      def could_not(check, reason) = @undone |= [Undone.new(check, reason)]

      # Notes that a check saw some of the requests only.
      def limited(check, requests, all) = @limits << Limited.new(check, requests, all)

      # Notes the lines of a list that hold no request.
      # @param list [RequestList]
      def unread(list)
        limits << Unread.new("requests", list.lines, list.unread) if list.unread.any?
      end

      # Notes that the application does not know the default request.
      def no_root = limits << NoRoot.new("requests", 0, 1)

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

      PANDO = File.expand_path("../..", __dir__)

      def ours?(location) = !location.nil? && location.start_with?("#{PANDO}/")
    end
  end
end
