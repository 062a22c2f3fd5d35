# frozen_string_literal: true

module Bench
  # The Ruby of a benchmark and its servers: one with YJIT, unless another one is requested.
  module YJITRuby
    CHECKOUT = File.expand_path("../..", __dir__)
    OPTION = "--ruby"

    # Execs the other Ruby if this is not the right one, then makes sure that the extension is compiled.
    #
    # @param arguments [Array<String>] the command line; the option and its value are removed
    # @return [void]
    def self.settle(arguments)
      wanted = wanted_ruby(arguments)
      exec({ "RUBYOPT" => nil }, wanted, $PROGRAM_NAME, *arguments, OPTION, "this") if wanted != "this"

      path = [File.dirname(Gem.ruby), ENV.fetch("PATH", "")].join(File::PATH_SEPARATOR)
      system({ "PATH" => path }, File.join(CHECKOUT, "bin/compile")) || abort("the extension does not compile")
    end

    def self.wanted_ruby(arguments)
      index = arguments.index(OPTION)
      return arguments.slice!(index, 2)[1] || abort("#{OPTION} needs a value") if index

      compiles?(RUBY_VERSION) ? "this" : built
    end

    # Ruby 3.1's and 3.2's YJIT were very different, and hardly anybody uses them today.
    def self.compiles?(version) = defined?(RubyVM::YJIT) && Gem::Version.new(version) >= Gem::Version.new("3.3")

    # @return [String] path of the Ruby that CI builds, built now if it is missing
    def self.built
      folder = IO.popen([File.join(CHECKOUT, "ci/ruby-yjit")], &:readlines).last
      folder ? File.join(folder.chomp, "ruby") : abort("no Ruby with YJIT; #{OPTION} this runs without")
    end
    private_class_method :wanted_ruby, :compiles?
  end
end
