# frozen_string_literal: true

require "pando/doctor/lazy_state/loading"

module Pando
  module Doctor
    module LazyState
      # Findings about objects: those that the first request built and kept, and those that each request adds.
      class MemoryFindings
        SHOWN = 5 # classes and lines in the details of a finding
        ENTRY_BYTES = 16 # of a container's entry, roughly: 8 in an Array, 24 in a Hash

        # @param groups [Array<Group>] of new objects
        # @param growths [Array<Containers::Growth>]
        # @param holders [Hash{Group, Containers::Growth => Hash{Holders::Holder => Integer}}]
        def initialize(groups, growths, holders)
          @groups = groups
          @growths = growths
          @holders = holders
        end

        def findings = growing + lazy + containers

        private

        # All growth under one name is one finding, at the line that adds most.
        def growing
          leaking.group_by { |group| holder_of([group])&.name || group.place }.values.map do |groups|
            groups = groups.sort_by { |group| -group.bytes_per_request }
            finding(:growth_per_request, groups.first.place, groups, bytes: groups.sum(&:bytes_per_request),
                                                                     objects: groups.sum(&:objects_per_request))
          end
        end

        # A line that leaks files is a finding of the check for growing descriptors.
        def leaking
          growing = @groups.select(&:grows?)
          files = growing.select(&:descriptors?).map(&:place)
          growing.reject { |group| files.include?(group.place) }
        end

        def lazy
          once.group_by(&:place).filter_map do |place, groups|
            bytes = groups.sum(&:lasting_bytes)
            next if bytes < Thresholds::NOTE

            finding(:lazy_memory, place, groups, severity: Thresholds.severity(bytes), bytes: bytes,
                                                 objects: groups.sum(&:lasting_objects))
          end
        end

        # Threads cannot be shared between processes, and nobody can fill the VM's tables at boot.
        def once = @groups.select { |group| group.lazy? && group.name != "Thread" && !group.vm_table? }

        def finding(kind, place, groups, bytes:, objects:, severity: nil)
          groups = groups.sort_by { |group| -group.bytes.sum }
          holder = holder_of(groups)
          details = { bytes: bytes, objects: objects, held_by: holder&.name, classes: classes(groups),
                      lines: groups.map { |group| "#{group.file}:#{group.line}" }.uniq.first(SHOWN) }
          ForkSafety::Finding.new(kind, severity: severity, location: place.join(":"),
                                        subject: holder&.name || subject(groups.first),
                                        message: message(kind, groups, bytes, objects, holder),
                                        advice: advice(kind, groups.first.name, holder), details: details.compact)
        end

        def subject(group) = "#{group.name} of #{File.basename(group.file)}"

        def message(kind, groups, bytes, objects, holder)
          what = "#{Thresholds.count(objects, "object")} (#{Thresholds.size(bytes)}; " \
                 "#{groups.map { |group| group.name.to_s }.uniq.first(3).join(", ")})"
          held = ", held by #{holder.name}" if holder
          "#{kind == :lazy_memory ? "The first request built and kept" : "Each request adds"} #{what}#{held}."
        end

        # @return [Holders::Holder, nil] that keeps at least half of the objects
        def holder_of(groups)
          counts = groups.each_with_object({}.compare_by_identity) do |group, all|
            @holders.fetch(group, {}).each { |holder, count| all[holder] = all.fetch(holder, 0) + count }
          end
          holder, count = counts.max_by { |one, reached| [reached, -one.name.size] }
          holder if holder && count * 2 >= groups.sum { |group| group.objects.sum }
        end

        def classes(groups)
          groups.group_by { |group| group.name.to_s }.first(SHOWN).map do |name, all|
            { class: name, objects: all.sum { |group| group.objects.sum }, bytes: all.sum { |group| group.bytes.sum } }
          end
        end

        # An Array, Hash or String that has grown without new objects, like a count by number. If there are new objects,
        # their line is the finding.
        def containers
          reported = @groups.select { |group| group.grows? || group.lazy? }
                            .flat_map { |group| @holders.fetch(group, {}).keys.map(&:name) }
          @growths.filter_map do |growth|
            holder = @holders.fetch(growth, {}).keys.min_by { |one| one.name.size }
            container(growth, holder) if holder && !reported.include?(holder.name)
          end
        end

        def container(growth, holder)
          bytes = growth.gain * (holder.object.is_a?(String) ? 1 : ENTRY_BYTES)
          return container_finding(:growth_per_request, growth, holder, bytes) if growth.steady?

          container_finding(:lazy_memory, growth, holder, bytes) if bytes >= Thresholds::NOTE
        end

        def container_finding(kind, growth, holder, bytes)
          lazy = kind == :lazy_memory
          entries = Thresholds.count(growth.gain, holder.object.is_a?(String) ? "byte" : "entry")
                              .sub("entrys", "entries")
          ForkSafety::Finding.new(
            kind, severity: (Thresholds.severity(bytes) if lazy), location: holder.place&.join(":"),
                  subject: holder.name, advice: advice(kind, nil, holder),
                  message: "#{lazy ? "The first request added" : "Each request adds"} #{entries} to #{holder.name}.",
                  details: { bytes: bytes, entries: growth.gain, before: growth.before, held_by: holder.name }
          )
        end

        # The change that moves the work to the boot; nil: the kind's default.
        # @param name [String, Symbol, nil] the class of most of the objects
        def advice(kind, name, holder)
          return growth_advice(holder) if kind == :growth_per_request
          return "Make the Regexp a constant, so that it is compiled at boot." if name == "Regexp"
          return "Build it at boot: a constant, or call at boot what the line calls." unless holder
          return "Fill #{holder.name} at boot, where the constant is written." if holder.constant

          "Fill #{holder.name} at boot: call at the end of the boot (config.ru, an initializer, " \
            "eager_load!) what the line calls, or make it a constant."
        end

        def growth_advice(holder)
          return unless holder

          "Bound #{holder.name} (a fixed number of entries; drop the oldest), or let requests release what they build."
        end
      end

      # Findings about code: files loaded, text compiled and methods defined while requests were served.
      class CodeFindings
        SHOWN = 20 # files or methods in the details of a finding

        # @param loading [Loading] @param defined [Array<Definitions::Defined>]
        # @param owners [Hash{Object => Array<Group>}] groups of objects by what they belong to
        def initialize(loading, defined, owners, places)
          @loading = loading
          @defined = defined
          @owners = owners
          @places = places
        end

        def findings = loads + texts + methods

        private

        def bytes_of(owner) = @owners.fetch(owner, []).reject(&:vm_table?).sum(&:lasting_bytes)

        # Each file of the application is a finding. The files of a gem are one finding, and so are those of Zeitwerk,
        # because one change loads them all. A file that is loaded again and again is no lazy state.
        def loads
          again = @loading.loads.group_by(&:path).transform_values(&:size)
          @loading.loads.select { |load| again[load.path] == 1 }
                  .group_by { |load| [library(load), load.autoload?] }
                  .map { |(library, _), all| load_finding(library, all) }
        end

        def library(load)
          @places.library(load.path) || (ZeitwerkFiles.loader_of(load.path) ? "files of Zeitwerk" : load.path)
        end

        def load_finding(library, loads)
          bytes = loads.sum { |load| bytes_of(load) }
          files = loads.flat_map(&:files)
          first = loads.max_by { |load| bytes_of(load) }
          details = { bytes: bytes, request: first.window + 1, loaded: loads.map(&:title).first(SHOWN),
                      files: files.first(SHOWN), files_count: files.size }
          build(first.autoload? ? :lazy_constant : :lazy_require, loads.size == 1 ? first.title : library, first.place,
                severity: load_severity(first, files, bytes),
                message: load_message(loads, files, bytes), advice: load_advice(loads), details: details)
        end

        # Rails intentionally loads an application's own files at boot in production only.
        def load_severity(first, files, bytes)
          return :note if ZeitwerkFiles.loader_of(first.path) && ZeitwerkFiles.loaded_when_needed?

          files.size >= Thresholds::FILES ? :warning : Thresholds.severity(bytes)
        end

        def load_advice(loads)
          names = loads.map(&:title).first(3).join(", ") + (", ..." if loads.size > 3).to_s
          return "Require at boot: #{names}." unless loads.first.autoload?
          return "Load it at boot: config.eager_load = true in Rails, Zeitwerk::Loader.eager_load_all elsewhere." \
            if ZeitwerkFiles.loader_of(loads.first.path)

          "Name at boot what autoload leaves to the first use: #{names}#{eager_note(loads.first.constant)}."
        end

        # ActiveSupport::Autoload gives a namespace eager_load!, but only for what is declared as eager.
        def eager_note(constant)
          name = constant.split("::").first
          known = Object.const_get(name) unless Object.autoload?(name)
          " (#{name}.eager_load! leaves out what is not declared as eager)" if known.respond_to?(:eager_load!)
        rescue NameError
          nil
        end

        def build(kind, subject, place, **facts)
          ForkSafety::Finding.new(kind, subject: subject, location: place&.join(":"), **facts)
        end

        def load_message(loads, files, bytes)
          names = loads.map(&:title)
          "Request #{loads.map(&:window).min + 1} #{loads.first.autoload? ? "autoloaded" : "loaded"} " \
            "#{names.first(3).join(", ")}#{" and #{names.size - 3} more" if names.size > 3} " \
            "(#{Thresholds.count(files.size, "file")}, #{Thresholds.size(bytes)})."
        end

        # Code that each request compiles again is no lazy state.
        def texts
          @loading.compiled.select { |one| one.windows.size == 1 }.group_by(&:path).filter_map do |path, all|
            bytes = all.sum { |one| bytes_of(one) }
            template = @places.own?(path) && !path.end_with?(".rb", ".ru")
            text_finding(path, all.first, all.size, bytes, template) if template || bytes >= Thresholds::NOTE
          end
        end

        def text_finding(path, first, count, bytes, template)
          place = @places.own?(path) || first.place.nil? ? [path, first.line] : first.place
          request = first.windows.first + 1
          size = "#{Thresholds.count(count, "time")}, #{Thresholds.size(bytes)}"
          name = @places.short(path)
          build(:lazy_code, name, place,
                severity: Thresholds.severity(bytes),
                message: "Request #{request} compiled #{template ? "the template" : "code of"} #{name} (#{size}).",
                advice: ("Compile it at boot: render it once before the fork." if template),
                details: { bytes: bytes, request: request, path: path, caller: first.place&.join(":") })
        end

        def methods
          @defined.filter_map do |one|
            next if @loading.load_of(one.path) || compiled?(one)
            next unless @places.own?(one.path) || (one.names.size >= Thresholds::METHODS && !@places.pando?(one.path))

            method_finding(one, bytes_of(one))
          end
        end

        # The methods of a compiled text belong to its own finding.
        def compiled?(one) = @loading.compiled.any? { |text| text.path == one.path && text.windows.size == 1 }

        def method_finding(one, bytes)
          owners = one.owners.first(3).join(", ")
          names = "#{one.names.first(5).join(", ")}#{", ..." if one.names.size > 5}"
          build(:lazy_method, owners, [one.path, one.line],
                message: "Requests defined #{Thresholds.count(one.names.size, "method")} of #{owners}: #{names}.",
                details: { bytes: bytes, methods: one.names.first(SHOWN), methods_count: one.names.size,
                           owners: one.owners.first(SHOWN) })
        end
      end
    end
  end
end
