# frozen_string_literal: true

require_relative "lib/pando/version"

Gem::Specification.new do |spec|
  spec.name = "pando"
  spec.version = Pando::VERSION
  spec.authors = ["The Pando developers"]
  spec.summary = "A Ruby application server whose worker processes share their memory"
  spec.description = <<~TEXT
    Pando serves Rack applications from single-threaded worker processes. A worker that has warmed up
    becomes the mold that the next generation of workers is forked from, so that inline caches, memoized
    values and compiled code are shared between all of them. For Linux; elsewhere it installs and serves for
    development from one plain process.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.{rb,html,css,js,txt}",
        "ext/**/*.{c,h,rb}", "sig/**/*.rbs", "exe/*", "LICENSE", "README.md", "CHANGELOG.md"]
  end
  spec.bindir = "exe"
  spec.executables = ["pando"]
  spec.extensions = ["ext/pando/extconf.rb"]

  spec.metadata["rubygems_mfa_required"] = "true"
end
