# frozen_string_literal: true

require "rbconfig"
require "pando/doctor/lazy_state/allocations"
require "pando/doctor/lazy_state/analysis"
require "pando/doctor/lazy_state/loading"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    module LazyState
      # Serves the same request several times in this process, and finds what each leaves behind: objects, loaded code,
      # methods, larger containers. Owned by LazyState or by a ForkedRun's child.
      class Observation
        # Objects whose holder is searched for, at most.
        FOLLOWED = 300_000
        # Some of Ruby's counters; RubyVM.stat has others in each Ruby, such as constant_cache_misses since 3.2.
        GARBAGE = %i[total_allocated_objects heap_allocated_pages].freeze
        COMPILED = %i[code_region_size inline_code_size outlined_code_size].freeze

        def initialize(root)
          @places = Places.new(root)
          @addresses = {}
        end

        # @param requests [Integer] 2 or more
        # @return [Result]
        def run(requests)
          raise ArgumentError, "a single request cannot be compared with another" if requests < 2

          start
          requests.times do |at|
            next_request unless at.zero?
            yield at + 1
          end
          finish
        ensure
          stop
        end

        # Called before the first request, in the fiber that has booted the application, because each fiber has a
        # Thread.current[] of its own.
        def start
          @definitions = Definitions.new
          @loading = Loading.new(@places)
          @containers = Containers.new
          @machine = []
          counters # the first call makes the counters' names, which must not count for a request
          @allocations = Allocations.new(@places)
          @began = Sys.now
          watch
          open_window
        end

        # Called between two requests.
        def next_request
          close_window
          @loading.next_window
          open_window
        end

        # Called after the last request.
        def finish
          close_window
          stop
          served = Sys.now
          groups = @allocations.read do |address, group|
            @addresses[address] = group if !group.cache? && @addresses.size < FOLLOWED
          end
          @loading.add_libraries(groups)
          analysis = Analysis.new(groups: groups, addresses: @addresses, loading: @loading, places: @places,
                                  defined: @definitions.fresh, growths: @containers.growths)
          seconds = { serving: (served - @began).round(2), reading: (Sys.now - served).round(2) }
          Result.new(analysis.findings, { **analysis.figures, machine: @machine, seconds: seconds })
        end

        private

        # Objects are known by their addresses, so none may move.
        def watch
          @compacts = GC.respond_to?(:auto_compact) && GC.auto_compact
          GC.auto_compact = false if @compacts
          @watching = true
          @allocations.start
          @containers.count
          @loading.start
        end

        def stop
          return unless @watching

          @watching = false
          @allocations.stop
          @loading.stop
          GC.auto_compact = true if @compacts
        end

        def open_window
          @allocations.open_window
          @before = counters
        end

        # Each request raises Ruby's own counters by so much.
        def close_window
          @machine << counters.to_h { |name, count| [name, count - @before[name]] }
          @containers.count
        end

        def counters
          compiled = YJIT.enabled? ? RubyVM::YJIT.runtime_stats.slice(*COMPILED) : {}
          RubyVM.stat.merge(GARBAGE.to_h { |name| [name, GC.stat(name)] }, compiled)
        end
      end

      # Tells the application's own files from those of gems, of Ruby and of Pando.
      class Places
        # Pando's own files never cause a finding.
        OWN_LIBRARY = "#{File.expand_path("../../..", __dir__)}/".freeze
        # Code between a require or a constant and the file that is loaded for it.
        LOADERS = Regexp.union(
          /\A<internal:/, "/rubygems/", "/bundler/", "/bundled_gems.rb", "/zeitwerk/", "/bootsnap/", "/polyglot",
          "/active_support/dependencies"
        ).freeze

        # @return [Array<String>] prefixes of the application's paths, and of other paths, perhaps below the former
        attr_reader :own, :foreign

        # @param root [String] code may have been loaded by this name or by the folder's real one
        def initialize(root)
          roots = [File.expand_path(root), File.realpath(root)].uniq
          @own = roots.map { |name| "#{name.chomp("/")}/" }.freeze
          @foreign = [*Gem.path, *RbConfig::CONFIG.values_at("rubylibdir", "sitelibdir", "vendorlibdir"),
                      *roots.map { |name| File.join(name, "vendor", "bundle") }, bundle]
                     .compact.reject(&:empty?).map { |path| "#{File.expand_path(path)}/" }.push(OWN_LIBRARY).uniq.freeze
        end

        def own?(path) = !path.nil? && path.start_with?(*own) && !path.start_with?(*foreign)

        def pando?(path) = !path.nil? && path.start_with?(OWN_LIBRARY)

        # @return [String, nil] the gem's name
        def library(path) = own?(path) ? nil : path[%r{/gems/([^/]+)-\d[^/]*/}, 1]

        # Relative to the application's folder, its gem's or one of $LOAD_PATH.
        def short(path)
          folder = own.find { |one| path.start_with?(one) } if own?(path)
          folder ||= path[%r{\A.*/gems/(?=[^/]+-\d[^/]*/)}] || load_folder(path)
          path.delete_prefix(folder.to_s)
        end

        # The argument of require for a loaded file.
        def feature(path)
          folder = load_folder(path)
          (folder ? path.delete_prefix(folder) : short(path)).sub(/\.(?:rb|so)\z/, "")
        end

        def loader?(path) = !path.nil? && LOADERS.match?(path)

        # @return [Array(String, Integer), nil] the line to show: the innermost of the application, if there is one
        def line_of(frames)
          frame = frames.find { |one| own?(one.path) } ||
                  frames.find { |one| !loader?(one.path) && !pando?(one.path) }
          frame && [frame.path, frame.lineno]
        end

        private

        def load_folder(path)
          folder = $LOAD_PATH.map(&:to_s).select { |one| path.start_with?("#{one}/") }.max_by(&:size)
          folder && "#{folder}/"
        end

        def bundle = defined?(::Bundler) && ::Bundler.respond_to?(:bundle_path) ? ::Bundler.bundle_path.to_s : nil
      end
    end
  end
end
