# frozen_string_literal: true

module Pando
  class Server
    # The folder that the monitor works in and hands down to the molds it boots, and the Gemfile in it. A
    # release folder is often named by a symbolic link that leads elsewhere by now.
    #
    # @api private
    class Surroundings
      GEMFILE = "BUNDLE_GEMFILE"

      # @param directory [String] as it was given, links and all
      # @raise [SystemCallError] it is not there
      def self.enter(directory) = new.tap { |surroundings| surroundings.send(:enter, directory) }

      # Goes there if the folder that we are in is no more.
      # @param directory [String]
      # @return [nil]
      def self.find(directory)
        Dir.pwd
        nil
      rescue SystemCallError
        begin
          Dir.chdir(directory)
        rescue SystemCallError
          nil # whoever boots will say so
        end
        nil
      end

      def initialize
        @folder = folder
        @gemfile = ENV.fetch(GEMFILE, nil)
      end

      # Back to where we were, if that is still there.
      def leave
        Dir.chdir(@folder)
        ENV[GEMFILE] = @gemfile
      rescue SystemCallError
        nil # the old release has been removed: what is to be booted can only be the new one
      end

      # Bundler, for one, names the Gemfile by its real path, which is that of the old release.
      # @param path [String]
      # @return [String] where that is now
      def moved(path)
        return path unless path.start_with?("#{@folder}/")

        there = File.join(Dir.pwd, path.delete_prefix("#{@folder}/"))
        File.exist?(there) ? there : path
      end

      private

      # Deployments that put each release in the same place remove the one that we are in.
      def folder
        Dir.pwd
      rescue Errno::ENOENT
        File.readlink("/proc/self/cwd").delete_suffix(" (deleted)") # proc(5)
      end

      def enter(directory)
        Dir.chdir(directory)
        ENV[GEMFILE] = moved(@gemfile) if @gemfile
      end
    end
  end
end
