# frozen_string_literal: true

# The suite reforks between its examples (docs/testing.md). Require this file before the app, with
# `--require pando/rspec` in .rspec or in spec_helper.rb. On other systems than Linux it changes nothing.
require "rspec/core"
require "pando/platform"
require "pando/testing"
if Pando::Platform.linux?
  require "pando/testing/rspec_plug"
  Pando::Testing::RSpecPlug.install
else
  warn "pando: the suite runs without reforks: they need Linux, and this is #{Pando::Platform.name}"
end
