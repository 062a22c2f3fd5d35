# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "pando/measure/contest"
require "pando/measure/result"
require "pando/measure/selection"
require "pando/measure/subject"
require "pando/sys"

module Pando
  # `pando measure`: the memory, CPU time and latency of the user's application on Puma and on Pando, side by side,
  # under the same requests. Runs in the process of the command; no server process loads it.
  #
  # @api private
  module Measure
    # The size of the load: workers of each server, requests of each worker, clients (requests under way at once),
    # headers of each request. `against` is :puma or :none.
    Plan = Struct.new(:workers, :requests, :clients, :headers, :against, keyword_init: true) do
      # Requests of each server.
      def total = workers * requests
    end

    # @param selection [Selection, nil] nil: the routes of a Rails application, / of others
    # @yieldparam words [String] what is being done
    # @yieldparam done [Integer, nil] of the load, how many requests
    # @yieldparam total [Integer, nil] of how many
    # @return [Result]
    # @raise [NotMeasured]
    def self.call(config, plan, selection = nil, &tell)
      Stage.open do |stage|
        selection ||= routes(config, stage, &tell)
        kinds = [(PumaSubject if plan.against == :puma && PumaSubject.program), PandoSubject].compact
        subjects = stage.start(kinds, config, workers: plan.workers) { |subject| tell.call("booting #{subject.name}") }
        tell.call("trying each request once")
        rehearsal = Rehearsal.new(subjects, selection, plan.headers).call
        Result.new(config, plan, rehearsal, Contest.new(subjects, rehearsal, plan, tell).call)
      end
    end

    def self.routes(config, stage)
      return Selection.of_root unless Config::Situation.rails?(config.directory)

      yield "reading the routes"
      Selection.of_routes(RailsRoutes.paths(config, stage.folder))
    end
    private_class_method :routes

    # The servers, which run at the same time, and a folder for their files. Removes all of them at the end, however the
    # command ends. Owned by the process of the command.
    class Stage
      # Bytes. The name of a UNIX socket has little room.
      LONGEST_FOLDER = 60
      SIGNALS = %w[INT TERM HUP].freeze

      def self.open
        stage = new
        yield stage
      ensure
        stage&.close
      end

      attr_reader :folder

      def initialize
        Sys.subreaper! # processes that a server leaves behind become children of this one
        @folder = Dir.mktmpdir("pando-measure", ("/tmp" if Dir.tmpdir.bytesize > LONGEST_FOLDER))
        @subjects = []
      end

      # Starts the servers, one after the other, so that both boot at the same pace.
      # @yieldparam subject [Subject] about to start
      # @return [Array<Subject>] ready
      # @raise [NotMeasured]
      def start(kinds, config, workers:)
        kinds.each do |kind|
          place = File.join(folder, kind.name[/\w+\z/])
          Dir.mkdir(place)
          @subjects << subject = kind.new(config, workers: workers, folder: place)
          yield subject
          subject.start
          subject.await
        end
        @subjects
      end

      # Ignores further signals, so that it always completes. It takes a bounded time.
      def close
        SIGNALS.each { |name| Signal.trap(name, "IGNORE") }
        @subjects.each(&:stop)
        @subjects.each(&:finish)
        end_descendants
      ensure
        SIGNALS.each { |name| Signal.trap(name, "DEFAULT") }
        FileUtils.rm_rf(folder)
      end

      private

      def end_descendants
        until (left = ProcessTree.new(Process.pid, //).pids.drop(1)).empty?
          left.each { |pid| Subject.kill(pid) }
          Process.wait
        end
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
