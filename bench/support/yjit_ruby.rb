# frozen_string_literal: true

module Bench
  # The Ruby that a benchmark runs on, and its servers with it: one with YJIT, unless another is asked for.
  module YJITRuby
    CHECKOUT = File.expand_path("../..", __dir__)
    OPTION = "--ruby"

    # Goes on as another program where this Ruby is not the one, then sees to it that the extension is compiled.
    #
    # @param arguments [Array<String>] the command line; the option and its value are taken out
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

    # Ruby 3.1's and 3.2's YJIT were others, and nobody's choice today.
    def self.compiles?(version) = defined?(RubyVM::YJIT) && Gem::Version.new(version) >= Gem::Version.new("3.3")

    # @return [String] path of the one that CI builds, built now if need be
    def self.built
      folder = IO.popen([File.join(CHECKOUT, "ci/ruby-yjit")], &:readlines).last
      folder ? File.join(folder.chomp, "ruby") : abort("no Ruby with YJIT; #{OPTION} this runs without")
    end
    private_class_method :wanted_ruby, :compiles?
  end
end
