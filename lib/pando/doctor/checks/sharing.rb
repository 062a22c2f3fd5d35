# frozen_string_literal: true

require "pando/doctor/network"
require "pando/sys"

module Pando
  module Doctor
    module Checks
      # The descriptors that a mold and its workers have in common, once the workers have served:
      # who wanted one of his own has it by now. Looked at while they live.
      #
      # @api private
      class Sharing
        # `open` is the mold's Census::Open, `io` what the mold's Ruby says of it (nil: C code's
        # own), `holders` the Actors that have it open, `uses` what Subject::Use told of each worker that used it.
        Shared = Struct.new(:open, :io, :holders, :uses, :socket, :helper, keyword_init: true) do
          # Two live processes at least: two workers, or one and the process that had used it before it was forked.
          def used_by_two? = uses.size >= 2 || uses.any? { |one| one[:before] }

          # @return [String, nil] the line that used it in a worker
          def use_site = uses.filter_map { |one| one[:site] }.first

          # What C code reads from a pipe or a UNIX socket leaves no trace.
          def use_visible? = !io.nil? || !open.link.match?(/\A(?:socket|pipe):/) || !!socket&.tcp?

          # Without numbers that differ from run to run.
          def link = open.link.sub(/\[\d+\]/, "")

          # @return [String, nil] the line that opened it, of a second look if it was C code
          def location(evidence)
            return io[:location] if io&.fetch(:location)

            alike = evidence.origins.select { |one| one[:origin] == "descriptor" && one[:link] == link }
            (alike.find { |one| one[:number] == open.number } || alike.first)&.fetch(:location)
          end
        end

        STDIO = [0, 1, 2].freeze

        # @param evidence [Evidence] @param generation [Evidence::Generation]
        def initialize(evidence, generation)
          @evidence = evidence
          @generation = generation
          @mold = generation.censuses[generation.mold]
          @networks = [Network.new(@mold.pid), generation.network] if @mold
        end

        # @return [Array<Shared>]
        def all
          @all ||= candidates.filter_map { |open| shared(open) }
        end

        private

        # What the mold had when it forked, less what is Pando's, kept on purpose or the terminal.
        def candidates
          unless @mold && said
            @evidence.could_not("shared descriptors", "the mold of generation #{@generation.number} said nothing")
            return []
          end

          spared = said[:own] | said[:kept] | STDIO
          @mold.descriptors.values.reject do |open|
            spared.include?(open.number) || @evidence.ours?(io(open.number)&.fetch(:location)) || terminal?(open)
          end
        end

        def shared(open)
          workers = @generation.censuses.except(@generation.mold)
          holders = workers.select { |_, census| @mold.shares?(open.number, census) }.keys
          return if holders.empty?

          Shared.new(open: open, io: io(open.number), holders: [@generation.mold, *holders], uses: uses(open),
                     socket: socket(open), helper: helper(open))
        end

        def said = @said ||= @evidence.snapshots(:fork).find { |one| one[:pid] == @mold.pid && one[:role] == "mold" }
        def io(number) = said[:ios].find { |one| one[:number] == number }
        def uses(open) = @generation.uses.values.filter_map { |used| used.find { |one| one[:number] == open.number } }

        # What it is, or else was before the workers served: the peer may have hung up because they shared it.
        def socket(open)
          return unless open.link.start_with?("socket:")

          seen = @networks.filter_map { |network| network[open.inode] }
          seen.find { |one| one.kind != :idle } || seen.first
        end

        # $stdout.dup: shared by intention.
        def terminal?(open)
          pid = @mold.pid
          STDIO.any? do |number|
            @mold.descriptors[number]&.link == open.link && Sys.open_file_shared?(pid, number, pid, open.number)
          end
        rescue SystemCallError
          false
        end

        # A process that is none of the cluster's holds an end of it too.
        # @return [String, nil] its title
        def helper(open)
          return unless open.link.start_with?("pipe:")

          ours = @evidence.facts.filter_map { |fact| fact[:pid] }
          strangers.find { |pid, links| !ours.include?(pid) && links.include?(open.link) }&.then do |pid, _|
            File.read("/proc/#{pid}/comm").chomp
          end
        rescue SystemCallError
          nil
        end

        def strangers
          @strangers ||= @generation.censuses.keys.first.then do
            Dir.children("/proc").grep(/\A\d+\z/).filter_map do |pid|
              next if File.read("/proc/#{pid}/stat")[/\) . \d+ (\d+)/, 1] != group

              [pid.to_i, Dir.children("/proc/#{pid}/fd").map { |fd| File.readlink("/proc/#{pid}/fd/#{fd}") }]
            rescue SystemCallError
              nil
            end.to_h
          end
        end

        def group = @group ||= File.read("/proc/#{@mold.pid}/stat")[/\) . \d+ (\d+)/, 1]
      end
    end
  end
end
