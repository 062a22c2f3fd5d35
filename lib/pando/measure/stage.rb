# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "pando/measure/pando_subject"
require "pando/measure/puma_subject"
require "pando/sys"

module Pando
  module Measure
    # The servers, which run at the same time, and a folder for their files. Removes all of them at the end, however the
    # command ends. Owned by the process of the command.
    #
    # @api private
    class Stage
      # Bytes. The name of a UNIX socket has little room.
      LONGEST_FOLDER = 60
      SIGNALS = %w[INT TERM HUP].freeze
      private_constant :LONGEST_FOLDER, :SIGNALS

      # @yieldparam stage [Stage]
      def self.open
        stage = new
        yield stage
      ensure
        stage&.close
      end

      # @return [String]
      attr_reader :folder

      def initialize
        Sys.subreaper! # processes that a server leaves behind become children of this one
        @folder = Dir.mktmpdir("pando-measure", ("/tmp" if Dir.tmpdir.bytesize > LONGEST_FOLDER))
        @subjects = []
      end

      # Starts the servers, one after the other, so that both boot at the same pace.
      #
      # @param kinds [Array<Class>]
      # @yieldparam subject [Subject] about to start
      # @return [Array<Subject>] ready
      # @raise [NotMeasured]
      def start(kinds, config, workers:)
        kinds.each do |kind|
          place = File.join(folder, kind.name[/\w+\z/])
          Dir.mkdir(place)
          @subjects << kind.new(config, workers: workers, folder: place)
          yield @subjects.last
          @subjects.last.start
          @subjects.last.await
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
