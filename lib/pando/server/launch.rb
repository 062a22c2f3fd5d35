# frozen_string_literal: true

require "pando/cluster/cold_boot_command"
require "pando/cluster/control/line"
require "pando/server/allocator"
require "pando/server/release_directory"
require "pando/yjit"
require "rbconfig"

module Pando
  class Server
    # How to start a clean process of this Ruby, with this Pando or that of a new release.
    module Launch
      SCRIPT = File.expand_path("cold_mold.rb", __dir__)
      LIBRARY = File.expand_path("../..", __dir__)
      EXAMINATION = File.expand_path("examination.rb", __dir__)
      # The path of a loaded extension, see pando/native; the first group is the folder of the load path.
      EXTENSION = %r{\A(.*)/pando/(?:\d+\.\d+/)?pando_ext\.so\z}

      module_function

      # Starts a mold.
      # @param folders [Array<String>] where its Pando is
      # @raise [BootError] it cannot be as it was asked for
      def mold(config, *folders)
        Cluster::ColdBootCommand.new(command(config, *folders), Allocator.new(config.allocator).variables)
      end

      def command(config, *folders) = image("pando/server/cold_mold.rb", config, folders)

      # Reads the configuration of a new release, see ProbedRelease.
      def probe(config) = image("pando/server/probe.rb", config, [])

      # Finds out where a process is stuck.
      def examination
        [RbConfig.ruby, "--disable=gems", "-W0", "-I", LIBRARY, EXAMINATION]
      end

      # Starts the admin process, in no bundle. It finds its settings in a variable of its environment.
      # @return [Array(Array<String>, Hash{String => String})] for exec
      def admin(config, *folders)
        path, script = code("pando/admin/main.rb", folders)
        settings = { token_file: config.admin_token_file || nil, token_env: config.admin_token_env || nil,
                     token: ("#{config.control}.token" if config.control), hosts: config.admin_hosts.join(",") }
        pairs = settings.compact.map { |name, text| "#{name}=#{Cluster::Control::Line.escape(text.b)}" } # of any length
        [[RbConfig.ruby, "--disable=did_you_mean", "--disable=error_highlight", "-W0", *path, script],
         { "PANDO_ADMIN" => ["admin", *pairs].join(" ") }]
      end

      # Yields what the server would be if it were started now, by the same command in the same folder: a link may lead
      # to another release by now, with another Gemfile and another Pando. The block runs in that folder.
      # @yieldparam command [Array<String>] @yieldparam variables [Hash{String => String}]
      # @raise [Pando::Error, SystemCallError]
      def successor(config)
        origin = Origin.noted or raise Error, "it is not known how this server was started"
        release = ReleaseDirectory.new(config.directory)
        release.within do |before|
          program, *libraries = [origin.program, *origin.libraries].map { |path| release.moved(path, before) }
          raise Error, "#{program}, with which the server was started, no longer exists" unless File.file?(program)

          folders = libraries.flat_map { |folder| ["-I", folder] }
          yield [RbConfig.ruby, *jit, *folders, program, *config.argv], ENV.to_h
        end
      end

      def image(script, config, folders)
        path, script = code(script, folders)
        [RbConfig.ruby, *jit, *path, script, *config.argv]
      end

      # @return [Array(Array<String>, String)] the flags for the load path, and the script's own path
      def code(script, folders)
        path = folders.empty? ? load_path : folders.flat_map { |folder| ["-I", folder] }
        library = folders.find { |folder| File.file?(File.join(folder, script)) } || LIBRARY
        [path, File.join(library, script)]
      end

      # The flags that put Pando's library on the load path. The extension of an installed gem may live in a
      # folder of its own.
      # @param features [Array<String>] the files that this process has loaded
      def load_path(features = $LOADED_FEATURES)
        [LIBRARY, *features.filter_map { |path| path[EXTENSION, 1] }].uniq.flat_map { |folder| ["-I", folder] }
      end

      # A flag of the monitor's own command line; RUBYOPT and RUBY_YJIT_ENABLE are inherited anyway.
      def jit
        return ["--zjit"] if YJIT.displaced?

        YJIT.enabled? ? ["--yjit"] : []
      end
    end

    # How this server was started: the program and the folders of code on the command line, with links as they were
    # given. The monitor cannot see them itself, because it has executed itself without RubyGems (ReexecWithoutGems). An
    # upgrade starts the same program again (Launch.successor).
    class Origin
      # In the environment of the image without gems.
      PROGRAM = "PANDO_PROGRAM"
      LIBRARIES = "PANDO_LIBRARIES"

      class << self
        # @return [Origin] of this process, once it has been noted
        attr_reader :noted

        # Called first, in the folder in which the command was run.
        def note(folder, environment = ENV)
          program, libraries = [PROGRAM, LIBRARIES].map { |name| environment.delete(name) }
          @noted = new(program || File.expand_path($PROGRAM_NAME, folder), libraries&.split(":") || own_libraries)
        end

        private

        # RubyGems and Bundler find the code of a gem by themselves, in the right version.
        def own_libraries
          here = File.expand_path("../..", __dir__)
          by_gem = defined?(Gem) ? Gem.loaded_specs["pando"]&.full_require_paths.to_a : []
          return [] if by_gem.any? { |folder| File.identical?(folder, here) }

          $LOAD_PATH.map(&:to_s).select { |folder| File.identical?(folder, here) }
        end
      end

      attr_reader :program, :libraries

      def initialize(program, libraries)
        @program = program
        @libraries = libraries
      end

      def environment = { PROGRAM => program, LIBRARIES => libraries.join(":") }
    end
  end
end
