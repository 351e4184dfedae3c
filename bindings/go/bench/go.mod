module example.invalid/esker/bindings/go/bench

go 1.24

require (
	example.invalid/esker/bindings/go v0.0.0
	github.com/syndtr/goleveldb v1.0.0
)

require github.com/golang/snappy v0.0.0-20180518054509-2e65f85255db // indirect

replace example.invalid/esker/bindings/go => ../
