module example.invalid/esker/bindings/go

go 1.24
